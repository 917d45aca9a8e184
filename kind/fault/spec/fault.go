// Package spec describes a fault as a value: its target, its kind and its options, with the text
// form for users and the JSON form for storage. The table in table.go lists all faults.
//
// It must import neither package fault nor package server, which inject faults.
package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// Fault is a fault of the testbed. New creates one.
type Fault struct {
	ID     string `json:"id,omitempty"` // of an active fault
	Target Target `json:"target"`
	Kind   Kind   `json:"kind"`
	On     Scope  `json:"on,omitempty"` // the requests that the fault applies to
	// Status, Header and Body are the response of a fault of kind Status.
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`
	Rate   int64       `json:"rate,omitempty"`   // bytes per second that Slow sends
	After  *int64      `json:"after,omitempty"`  // bytes of a body that Truncate sends; nil means half
	Accept []string    `json:"accept,omitempty"` // the SHA-256 sum, in hexadecimal, of each user:password that Credentials accepts
	// Name is the name of a profile, and Profile its content, which may be changed before the fault is
	// added.
	Name    string                   `json:"name,omitempty"`
	Profile *registryprofile.Profile `json:"profile,omitempty"`
	For     Duration                 `json:"for,omitempty"` // 0 means until the fault is deleted
	// Began and Ends are set by Begin. Ends is zero if For is 0.
	Began   time.Time `json:"began,omitzero"`
	Ends    time.Time `json:"ends,omitzero"`
	Outcome string    `json:"outcome,omitempty"` // of a one-shot fault, for example the new address of a Service
}

// Begin returns the fault with its ID and times set.
func (f Fault) Begin(id string, now time.Time) Fault {
	f.ID, f.Began = id, now
	if f.For > 0 {
		f.Ends = now.Add(time.Duration(f.For))
	}
	return f
}

// Same reports whether f and other are the same fault. It also compares the start, since IDs are
// reused.
func (f Fault) Same(other Fault) bool { return f.ID == other.ID && f.Began.Equal(other.Began) }

// Ended reports whether the time of the fault is over.
func (f Fault) Ended(now time.Time) bool { return !f.Ends.IsZero() && !now.Before(f.Ends) }

// Active returns the faults whose time is not over.
func Active(all []Fault, now time.Time) []Fault {
	return slices.DeleteFunc(slices.Clone(all), func(f Fault) bool { return f.Ended(now) })
}

// Select returns the faults with these IDs, or all without IDs, or a *UsageError for an unknown ID.
func Select(active []Fault, ids []string) ([]Fault, error) {
	if len(ids) == 0 {
		return active, nil
	}
	var known []string
	for _, f := range active {
		known = append(known, f.ID)
	}
	for _, id := range ids {
		switch {
		case len(known) == 0:
			return nil, usageErrorf("fault %s is not active: there are no active faults", id)
		case !slices.Contains(known, id):
			return nil, usageErrorf("fault %s is not active, use one of %s", id, list(known))
		}
	}
	return slices.DeleteFunc(slices.Clone(active), func(f Fault) bool { return !slices.Contains(ids, f.ID) }), nil
}

// NextID returns an ID that is higher than those of the faults: f1, f2 and so on.
func NextID(all []Fault) string {
	highest := 0
	for _, f := range all {
		if n, err := strconv.Atoi(strings.TrimPrefix(f.ID, "f")); err == nil {
			highest = max(highest, n)
		}
	}
	return "f" + strconv.Itoa(highest+1)
}

// Encode returns faults as JSON.
func Encode(all []Fault) ([]byte, error) {
	return json.Marshal(append([]Fault{}, all...)) // [] for none
}

// Decode parses the output of Encode. An unknown role or kind, or a missing profile, is an error.
func Decode(content []byte) ([]Fault, error) {
	var all []Fault
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("parse faults: %w", err)
	}
	for _, f := range all {
		if _, err := definitionOf(f.Target.Role, f.Kind); err != nil {
			return nil, fmt.Errorf("fault %s: %w", f.ID, err)
		}
		if f.Kind == Profile && f.Profile == nil {
			return nil, fmt.Errorf("fault %s: no profile", f.ID)
		}
	}
	return all, nil
}

// Effect returns what the target does, for example "answers 429 to all requests".
func (f Fault) Effect() string {
	requests, after := "all requests", "half"
	if f.On == Manifests || f.On == Blobs {
		requests = "requests for " + string(f.On)
	}
	if f.After != nil {
		after = size(*f.After) + " bytes"
	}
	values := strings.NewReplacer(
		"{status}", strconv.Itoa(f.Status), "{requests}", requests, "{rate}", size(f.Rate), "{after}", after, "{name}", f.Name)
	return cmp.Or(values.Replace(f.definition().effect), string(f.Kind))
}

func size(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// String returns a description of the fault in one line.
func (f Fault) String() string {
	if f.OneShot() {
		return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", f.Target, f.Effect(), f.Outcome), ": ")
	}
	return fmt.Sprintf("fault %s: %s %s, until %s", f.ID, f.Target, f.Effect(), f.end())
}

func (f Fault) end() string {
	if f.Ends.IsZero() {
		return "testbed fault delete " + f.ID
	}
	return f.Ends.Local().Format(time.TimeOnly)
}

// Write prints a table of faults.
func Write(w io.Writer, all []Fault) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no active faults")
		return err
	}
	writer := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(writer, "ID\tTARGET\tKIND\tEFFECT\tUNTIL")
	for _, f := range all {
		fmt.Fprintf(writer, "%s\t%s\t%s\t%s\t%s\n", f.ID, f.Target, f.Kind, f.Effect(), f.end())
	}
	return writer.Flush()
}

// Duration is a time.Duration with a text form, for example "30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// UsageError reports that an argument is wrong, for example an unknown target. Its message names
// the valid values.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// UsageError marks the error as a usage error: internal/program then exits with code 2.
func (*UsageError) UsageError() {}

func usageErrorf(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
