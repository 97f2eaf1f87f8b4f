// Fills in templates with Go's own text/template: the reference for ours. Reads a JSON list of templates from
// standard input, and writes the list of their texts, or of "error".
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"text/template"
	"time"
)

type code int

func (c code) String() string               { return map[code]string{1: "OK", 2: "WARN", 3: "ERR", 4: "STOP"}[c] }
func (c code) MarshalJSON() ([]byte, error) { return []byte(`"` + c.String() + `"`), nil }

type lag struct{ Value uint64 }

func (l lag) MarshalJSON() ([]byte, error) { return json.Marshal(l.Value) }

type commit struct {
	Offset            int64 `json:"offset"`
	Timestamp         int64 `json:"timestamp"`
	ObservedTimestamp int64 `json:"observedAt"`
	Lag               *lag  `json:"lag"`
}

type partition struct {
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	Owner      string  `json:"owner"`
	ClientID   string  `json:"client_id"`
	Status     code    `json:"status"`
	Start      *commit `json:"start"`
	End        *commit `json:"end"`
	CurrentLag uint64  `json:"current_lag"`
	Complete   float32 `json:"complete"`
}

type group struct {
	Cluster, Group  string
	Status          code
	Complete        float32
	Partitions      []*partition
	TotalPartitions int
	Maxlag          *partition
	TotalLag        uint64
}

func main() {
	first := &partition{"orders", 0, "/10.0.0.1", "ann", 4, &commit{5, 1000, 2000, &lag{95}}, &commit{7, 61000, 62000, &lag{93}}, 193, 0.4}
	second := &partition{"a<b>&c", 3, "", "", 2, &commit{1, 1000, 1000, nil}, &commit{2, 2000, 2000, &lag{0}}, 8, 1}
	data := struct {
		Cluster, Group, ID string
		Start              time.Time
		Extras             map[string]string
		Result             group
	}{
		"local", "it's", "the-id", time.Unix(1700000000, 0).UTC(), map[string]string{"app": "burrow", "tier": "one"},
		group{"local", "it's", 3, 0.5, []*partition{first, second}, 4, first, 201},
	}
	functions := template.FuncMap{
		"jsonencoder": func(v any) string { found, _ := json.Marshal(v); return string(found) },
		"add":         func(a, b int) int { return a + b },
		"divide":      func(a, b int) int { return a / b },
		"minus":       func(a, b int) int { return a - b },
		"formattimestamp": func(ms int64, layout string) string {
			return time.Unix(0, ms*int64(time.Millisecond)).UTC().Format(layout)
		},
	}
	var given, texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	for _, each := range given {
		out := new(bytes.Buffer)
		found, err := template.New("t").Funcs(functions).Parse(each)
		if err == nil {
			err = found.Execute(out, data)
		}
		if err != nil {
			texts = append(texts, "error")
			continue
		}
		texts = append(texts, out.String())
	}
	_ = json.NewEncoder(os.Stdout).Encode(texts)
}
