// Check files of Prometheus rule groups with Prometheus' own parser, as `promtool check rules` does.
//
// promtool itself takes minutes to build: it contains the service discovery of all cloud providers.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: prometheus-rules FILE...")
		os.Exit(2)
	}
	silent := slog.New(slog.NewTextHandler(io.Discard, nil))
	failed := false
	for _, file := range os.Args[1:] {
		groups, problems := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), silent)
		for _, problem := range problems {
			failed = true
			fmt.Println(problem)
		}
		if len(problems) == 0 {
			rules := 0
			for _, group := range groups.Groups {
				rules += len(group.Rules)
			}
			fmt.Printf("%s: %d rules found\n", file, rules)
		}
	}
	if failed {
		os.Exit(1)
	}
}
