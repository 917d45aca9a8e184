package plantedbugs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const summary = `{"versions":{},"scenarios":[
	{"name":"red","result":"failed","seconds":12.3,"evidence":["hosts.toml_names_the_cache: no: beta_is\nmore","x"],"steps":[]},
	{"name":"green","result":"passed","seconds":2,"evidence":["fine"]},
	{"name":"left-out","result":"skipped","evidence":["the testbed did not come up: no disk"]}]}`

func TestJudge(t *testing.T) {
	outcomes, err := ParseOutcomes([]byte(summary))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, problem, words string
		scenarios            []string
		caught               bool
	}{
		{name: "caught", scenarios: []string{"red"}, words: "names the cache", caught: true},
		{name: "red for another reason", scenarios: []string{"red"}, words: "written in place",
			problem: "red failed for another reason: hosts.toml names the cache: no: beta_is"},
		{name: "missed", scenarios: []string{"green"}, problem: "green passed"},
		{name: "caught by one of two", scenarios: []string{"red", "green"}, problem: "green passed"},
		{name: "not run", scenarios: []string{"left-out"}, problem: "left-out did not run: the testbed did not come up: no disk"},
		{name: "unknown", scenarios: []string{"other"}, problem: "other is not a scenario"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := Judge(Mutant{Name: "bug", Scenarios: tc.scenarios, Words: tc.words}, outcomes)
			if f.Caught != tc.caught || f.Problem != tc.problem {
				t.Errorf("caught %t, problem %q; want %t, %q", f.Caught, f.Problem, tc.caught, tc.problem)
			}
			if err := (&Report{Findings: []Finding{f}}).Err(); (err == nil) != tc.caught {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := ParseOutcomes([]byte("{")); err == nil {
		t.Error("a truncated summary was parsed")
	}
}

func TestCheckPassed(t *testing.T) {
	outcomes, err := ParseOutcomes([]byte(summary))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkPassed([]string{"green"}, outcomes); err != nil {
		t.Error(err)
	}
	err = checkPassed([]string{"green", "red", "left-out", "other"}, outcomes)
	for _, want := range []string{"red failed: hosts.toml names the cache: no: beta_is", "left-out skipped", "other is not a scenario"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "green") {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	report := Report{Seconds: 99.6, Findings: []Finding{
		{Mutant: Mutant{Name: "one"}, Caught: true, By: []Catch{{"red", "no: beta's", 12.3}, {"also-red", strings.Repeat("ö", 200), 3}}},
		{Mutant: Mutant{Name: "two"}, Problem: "green passed"},
		{Mutant: Mutant{Name: "three"}, By: []Catch{{"red", "no", 1}}, Problem: "green passed"},
	}}
	var out bytes.Buffer
	if err := report.Write(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "report.txt", out.String())
}
