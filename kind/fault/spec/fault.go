package spec

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing that is broken on purpose. New makes it.
type Fault struct {
	// ID names it among those that hold; it is given when it begins.
	ID     string `json:"id,omitempty"`
	Target Target `json:"target"`
	Kind   Kind   `json:"kind"`
	// On are the requests that it hits.
	On Scope `json:"on,omitempty"`
	// Status, Header and Body are the answer of a Status.
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`
	// Delay is the time until the first byte of an answer, with Latency.
	Delay Duration `json:"delay,omitempty"`
	// Rate is how many bytes of an answer pass in a second, with Slow.
	Rate int64 `json:"rate,omitempty"`
	// After is how many bytes of a body pass before a Reset or Truncate; nil is half of them.
	After *int64 `json:"after,omitempty"`
	// Accept is the SHA-256, in hexadecimal, of the user:password that Credentials asks for.
	Accept string `json:"accept,omitempty"`
	// Certificate is the one, in PEM, that an ExpiredTLS shows; the key is the upstream's own.
	Certificate string `json:"certificate,omitempty"`
	// For is how long it lasts; 0 is until it is cleared.
	For Duration `json:"for,omitempty"`
	// Began and Ends are set when it begins. Ends is zero for one that has no end of its own.
	Began time.Time `json:"began,omitzero"`
	Ends  time.Time `json:"ends,omitzero"`
	// Outcome is what came of an instant one, where there is something to say: the new address of a Service, for example.
	Outcome string `json:"outcome,omitempty"`
}

// Begin returns the fault with this name, beginning now.
func (f Fault) Begin(id string, now time.Time) Fault {
	f.ID, f.Began = id, now
	if f.For > 0 {
		f.Ends = now.Add(time.Duration(f.For))
	}
	return f
}

// Same says that both are one fault: IDs are given again.
func (f Fault) Same(other Fault) bool { return f.ID == other.ID && f.Began.Equal(other.Began) }

// CheckTime returns a *UseError for a time of a fault that has to be held for it, see Tended.
func (f Fault) CheckTime() error {
	if f.Tended() && f.For > 0 {
		return misuse("%s of %s ends only by a command: --for needs --wait", f.Kind, f.Target)
	}
	return nil
}

// Ended says whether its time is over.
func (f Fault) Ended(now time.Time) bool { return !f.Ends.IsZero() && !now.Before(f.Ends) }

// Active returns those whose time is not over.
func Active(all []Fault, now time.Time) []Fault {
	return slices.DeleteFunc(slices.Clone(all), func(f Fault) bool { return f.Ended(now) })
}

// NextID returns a name that none of these has: f1, f2 and so on, above all of them.
func NextID(all []Fault) string {
	highest := 0
	for _, f := range all {
		if n, err := strconv.Atoi(strings.TrimPrefix(f.ID, "f")); err == nil {
			highest = max(highest, n)
		}
	}
	return "f" + strconv.Itoa(highest+1)
}

// Encode returns faults as they are stored and handed on.
func Encode(all []Fault) ([]byte, error) {
	if all == nil {
		all = []Fault{}
	}
	return json.Marshal(all)
}

// Decode reads what Encode wrote. A fault that could not have been made by New is an error.
func Decode(content []byte) ([]Fault, error) {
	var all []Fault
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	for _, f := range all {
		if _, err := shapeOf(f.Target.Role, f.Kind); err != nil {
			return nil, fmt.Errorf("fault %s: %w", f.ID, err)
		}
	}
	return all, nil
}

// Duration is a time.Duration that is written as people do, for example "30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// UseError is a mistake in what somebody asked for. It says what there is.
type UseError struct{ text string }

func (e *UseError) Error() string { return e.text }

// UsageError marks the error for internal/program: exit code 2.
func (*UseError) UsageError() {}

func misuse(format string, args ...any) error { return &UseError{fmt.Sprintf(format, args...)} }
