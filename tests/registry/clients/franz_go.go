// franz-go's sr package against a registry: prints one line for each step that did what it should.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func expect(ok bool, step string, found any) {
	if !ok {
		fmt.Printf("failed: %s: %v\n", step, found)
		os.Exit(1)
	}
	fmt.Println(step)
}

func main() {
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	one := sr.Schema{Schema: `{"type":"record","name":"A","fields":[{"name":"x","type":"string"}]}`}
	two := sr.Schema{Schema: `{"type":"record","name":"A","fields":[{"name":"x","type":"string"},{"name":"y","type":"int"}]}`}
	made, err := client.CreateSchema(ctx, "go/a b", one)
	check(err)
	expect(made.Version == 1 && made.ID > 0, "registered", made)
	again, err := client.CreateSchema(ctx, "go/a b", one)
	check(err)
	expect(again.ID == made.ID && again.Version == 1, "registered again", again)
	found, err := client.SchemaByID(ctx, made.ID)
	check(err)
	expect(found.Schema == one.Schema && found.Type == sr.TypeAvro, "by id", found)
	latest, err := client.SchemaByVersion(ctx, "go/a b", -1)
	check(err)
	expect(latest.ID == made.ID, "latest", latest)
	looked, err := client.LookupSchema(ctx, "go/a b", one)
	check(err)
	expect(looked.Version == 1, "looked up", looked)
	result, err := client.CheckCompatibility(ctx, "go/a b", -1, two)
	check(err)
	expect(!result.Is, "incompatible", result)
	_, err = client.CreateSchema(ctx, "go/a b", two)
	var refused *sr.ResponseError
	expect(errors.As(err, &refused) && refused.StatusCode == 409, "refused", err)
	for _, each := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatNone}, "go/a b") {
		check(each.Err)
		expect(each.Level == sr.CompatNone, "level", each)
	}
	second, err := client.CreateSchema(ctx, "go/a b", two)
	check(err)
	expect(second.Version == 2, "second version", second)
	document, err := client.CreateSchema(ctx, "go-json", sr.Schema{Schema: `{"type":"object"}`, Type: sr.TypeJSON})
	check(err)
	proto := `syntax = "proto3"; import "shared.proto"; message M { Shared s = 1; }`
	_, err = client.CreateSchema(ctx, "shared", sr.Schema{Schema: `syntax = "proto3"; message Shared {}`, Type: sr.TypeProtobuf})
	check(err)
	message, err := client.CreateSchema(ctx, "go-proto", sr.Schema{
		Schema: proto, Type: sr.TypeProtobuf,
		References: []sr.SchemaReference{{Name: "shared.proto", Subject: "shared", Version: 1}},
	})
	check(err)
	expect(document.Type == sr.TypeJSON && message.Type == sr.TypeProtobuf && len(message.References) == 1, "types", message)
	users, err := client.SchemaReferences(ctx, "shared", 1)
	check(err)
	expect(len(users) == 1 && users[0].Subject == "go-proto", "references", users)
	types, err := client.SupportedTypes(ctx)
	check(err)
	expect(len(types) == 3, "supported types", types)
	mode := client.SetMode(ctx, sr.ModeReadOnly, "go-json")
	check(mode[0].Err)
	_, err = client.DeleteSubject(ctx, "go-json", sr.SoftDelete)
	expect(errors.As(err, &refused) && refused.ErrorCode == 42205, "read only", err)
	subjects, err := client.Subjects(ctx)
	check(err)
	expect(len(subjects) == 4, "subjects", subjects)
	gone, err := client.DeleteSubject(ctx, "go/a b", sr.SoftDelete)
	check(err)
	expect(len(gone) == 2, "soft delete", gone)
	gone, err = client.DeleteSubject(ctx, "go/a b", sr.HardDelete)
	check(err)
	expect(len(gone) == 2, "hard delete", gone)
	fmt.Println("ok")
}
