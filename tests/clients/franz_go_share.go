// Share consumers of franz-go that do what they are told: the same commands and answers as JavaShare.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var members = map[string]*kgo.Client{}
var records = map[string]*kgo.Record{}
var kinds = map[string]kgo.AckStatus{
	"ACCEPT": kgo.AckAccept, "RELEASE": kgo.AckRelease, "REJECT": kgo.AckReject, "RENEW": kgo.AckRenew,
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for input.Scan() {
		fmt.Println(answer(strings.Split(input.Text(), " ")))
	}
}

func answer(words []string) string {
	name := words[1]
	member := members[name]
	switch words[0] {
	case "open":
		count, _ := strconv.Atoi(words[3])
		made, err := kgo.NewClient(
			kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.ShareGroup(os.Args[2]), kgo.ConsumeTopics(os.Args[3]),
			kgo.ClientID(name), kgo.ShareMaxRecords(int32(count)), kgo.MetadataMaxAge(time.Second),
			kgo.MetadataMinAge(100*time.Millisecond), kgo.MaxConcurrentFetches(1),
		)
		if err != nil {
			return "failed " + err.Error()
		}
		members[name] = made
		return "done"
	case "poll":
		wait, _ := strconv.Atoi(words[2])
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(wait)*time.Millisecond)
		defer cancel()
		found := "done"
		member.PollFetches(ctx).EachRecord(func(each *kgo.Record) {
			records[fmt.Sprintf("%s %d %d", name, each.Partition, each.Offset)] = each
			found += fmt.Sprintf(" %d:%d:%s:%d", each.Partition, each.Offset, each.Value, each.DeliveryCount())
		})
		return found
	case "ack":
		member.MarkAcks(kinds[words[4]], records[strings.Join(words[1:4], " ")])
		return "done"
	case "commit":
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := member.FlushAcks(ctx); err != nil {
			return "done " + err.Error()
		}
		return "done"
	case "close":
		member.Close()
		delete(members, name)
		return "done"
	}
	return "failed unknown command"
}
