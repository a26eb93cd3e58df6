//go:build ignore

// Answers the cases of one golden file with Kubernetes' own code: go run record.go SUBJECT < SUBJECT.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func text(raw json.RawMessage) string {
	var value string
	if err := json.Unmarshal(raw, &value); err != nil {
		panic(err)
	}
	return value
}

func answer(subject string, given []json.RawMessage) (any, error) {
	switch subject {
	case "quantities":
		read, err := resource.ParseQuantity(text(given[0]))
		return fmt.Sprintf("%s %s", read.String(), read.Format), err
	case "quantity_sums":
		left, err := resource.ParseQuantity(text(given[0]))
		if err != nil {
			return nil, err
		}
		right, err := resource.ParseQuantity(text(given[1]))
		if err != nil {
			return nil, err
		}
		order := left.Cmp(right)
		left.Add(right)
		return fmt.Sprintf("%d %s", order, left.String()), nil
	case "label_selectors":
		read, err := labels.Parse(text(given[0]))
		if err != nil {
			return nil, err
		}
		return read.String(), nil
	case "field_selectors":
		read, err := fields.ParseSelector(text(given[0]))
		if err != nil {
			return nil, err
		}
		return read.String(), nil
	case "json_patches":
		patch, err := jsonpatch.DecodePatch(given[1])
		if err != nil {
			return nil, err
		}
		patched, err := patch.Apply(given[0])
		return json.RawMessage(patched), err
	case "merge_patches":
		patched, err := jsonpatch.MergePatch(given[0], given[1])
		return json.RawMessage(patched), err
	case "strategic_patches":
		patched, err := strategicpatch.StrategicMergePatch(given[0], given[1], corev1.Pod{})
		return json.RawMessage(patched), err
	}
	return nil, fmt.Errorf("no subject %q", subject)
}

const attempts = 50

// encoded answers one case and returns it as a line of JSON.
func encoded(subject string, given []json.RawMessage) []byte {
	row := map[string]any{"given": given}
	if found, err := answer(subject, given); err != nil {
		row["error"] = err.Error()
	} else {
		row["answer"] = found
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(row); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(line.Bytes())
}

// kubernetes returns the version of Kubernetes that the libraries belong to: v0.37.1 is of v1.37.1.
func kubernetes() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		panic("no build information")
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/apimachinery" {
			return "v1" + strings.TrimPrefix(module.Version, "v0")
		}
	}
	panic("k8s.io/apimachinery is not among the dependencies")
}

func main() {
	var file struct {
		Cases []struct {
			Given []json.RawMessage `json:"given"`
		} `json:"cases"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&file); err != nil {
		panic(err)
	}
	for index, one := range file.Cases {
		// Maps are read in random order: of a patch with two mistakes, either may be reported. Keep the first by
		// its text, so that recording again gives the same file.
		line := encoded(os.Args[1], one.Given)
		for range attempts {
			if other := encoded(os.Args[1], one.Given); bytes.Compare(other, line) < 0 {
				line = other
			}
		}
		opening, closing := "", ","
		if index == 0 {
			opening = fmt.Sprintf("{\"kubernetes\": %q, \"cases\": [\n", kubernetes())
		}
		if index == len(file.Cases)-1 {
			closing = "\n]}"
		}
		fmt.Printf("%s%s%s\n", opening, line, closing)
	}
}
