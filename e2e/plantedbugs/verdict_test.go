package plantedbugs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// outcome is the result of one scenario in summary.json.
type outcome struct {
	Name, Result string
	Seconds      float64
	Evidence     []string
}

// find returns the outcome of a scenario.
func find(summary []byte, scenario string) (outcome, error) {
	var read struct{ Scenarios []outcome }
	if err := json.Unmarshal(summary, &read); err != nil {
		return outcome{}, fmt.Errorf("parse the results: %w", err)
	}
	i := slices.IndexFunc(read.Scenarios, func(o outcome) bool { return o.Name == scenario })
	if i < 0 {
		return outcome{}, fmt.Errorf("%s is not a scenario", scenario)
	}
	return read.Scenarios[i], nil
}

// reason returns the failed step and its error. go test replaces spaces in the name of the step
// with underscores; reason restores them.
func (o outcome) reason() string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.Join(o.Evidence, "\n")), "\n")
	step, message, found := strings.Cut(line, ": ")
	if !found {
		return line
	}
	return strings.ReplaceAll(step, "_", " ") + ": " + message
}

// verdict returns an error unless the bug's scenario has failed, or was skipped (see notUp), for
// the bug's reason.
func verdict(summary []byte, bug bug) (outcome, error) {
	o, err := find(summary, bug.scenario)
	switch {
	case err != nil:
	case o.Result != "failed" && (o.Result != "skipped" || !strings.HasPrefix(bug.reason, notUp)):
		err = fmt.Errorf("%s %s: %s", bug.scenario, o.Result, o.reason())
	case !strings.Contains(o.reason(), bug.reason):
		err = fmt.Errorf("%s failed for another reason: %s", bug.scenario, o.reason())
	}
	return o, err
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	summary := []byte(`{"versions":{},"scenarios":[
		{"name":"red","result":"failed","seconds":12.3,"evidence":["hosts.toml_names_the_cache: no: beta_is\nmore","x"],"steps":[]},
		{"name":"green","result":"passed","seconds":2,"evidence":["fine"]},
		{"name":"left-out","result":"skipped","evidence":["the testbed did not come up: no disk"]}]}`)
	for _, tc := range []struct{ scenario, reason, want string }{
		{"red", "names the cache", ""},
		{"red", "written in place", "red failed for another reason: hosts.toml names the cache: no: beta_is"},
		{"green", "fine", "green passed: fine"},
		{"left-out", "", "left-out skipped: the testbed did not come up: no disk"},
		{"left-out", notUp + "no disk", ""},
		{"left-out", notUp + "no memory", "left-out failed for another reason: the testbed did not come up: no disk"},
		{"green", notUp, "green passed: fine"},
		{"other", "", "other is not a scenario"},
	} {
		_, err := verdict(summary, bug{scenario: tc.scenario, reason: tc.reason})
		if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
			t.Errorf("%s: error %v, want %q", tc.scenario, err, tc.want)
		}
	}
	if _, err := verdict([]byte("{"), bug{}); err == nil {
		t.Error("a truncated summary was parsed")
	}
}
