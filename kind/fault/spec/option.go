package spec

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// Option is a command line option of `testbed fault add`.
type Option struct {
	Name, Usage string // of the flag; Usage contains the placeholder of the value in backquotes
	Repeated    bool   // the flag can be given several times
	set         func(f *Fault, values []string) error
}

// Options returns the options of all kinds. New refuses options that a kind does not take.
func Options() []Option { return slices.Clone(options) }

var options = []Option{
	{Name: "for", Usage: "end the fault after this `duration`, for example 30s (default: until it is deleted)", set: setFor},
	{Name: "on", Usage: "`requests` that the fault applies to: manifests, blobs, or all (every request, also /v2/)", set: setOn},
	{Name: "status", Usage: "status `code` of the answer, for example 429", set: setStatus},
	{Name: "header", Usage: "set a header of the answer: `name=value` (repeatable)", Repeated: true, set: setHeader},
	{Name: "body", Usage: "`text` of the response body (default: the text of the HTTP status)", set: setBody},
	{Name: "accept", Usage: "accept only these credentials: `SHA-256`, as printed by printf %s user:password | sha256sum (repeatable)",
		Repeated: true, set: setAccept},
	{Name: "name", Usage: "the `registry` that a profile describes: " + list(profileNames()), set: setProfile},
	{Name: "rate", Usage: "`bytes` per second of each answer, for example 64Ki", set: setRate},
	{Name: "after", Usage: "how many `bytes` of the body are sent before the fault, for example 1Mi (default: half of the body)", set: setAfter},
}

// maxDuration limits durations. Longer ones are considered typing errors.
const maxDuration = 24 * time.Hour

func setFor(f *Fault, values []string) error {
	d, err := time.ParseDuration(values[0])
	if err != nil || d < time.Millisecond || d > maxDuration {
		return usageErrorf("want a duration from 1ms to %s, for example 30s", maxDuration)
	}
	f.For = Duration(d)
	return nil
}

func setOn(f *Fault, values []string) error {
	if !slices.Contains(scopes, Scope(values[0])) {
		return usageErrorf("want one of %s", list(scopes))
	}
	f.On = Scope(values[0])
	return nil
}

func setStatus(f *Fault, values []string) error {
	status, err := strconv.Atoi(values[0])
	// A success is not a fault, and 304 has no body.
	if err != nil || status < 300 || status > 599 || status == http.StatusNotModified {
		return usageErrorf("want an HTTP status from 300 to 599, not 304")
	}
	f.Status = status
	return nil
}

var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

func setHeader(f *Fault, values []string) error {
	f.Header = http.Header{}
	for _, text := range values {
		name, value, found := strings.Cut(text, "=")
		switch {
		case !found || !headerName.MatchString(name):
			return usageErrorf("want NAME=VALUE, for example Retry-After=30")
		case strings.ContainsAny(value, "\r\n\x00"):
			return usageErrorf("the value of %s must not have a line break or NUL", name)
		case http.CanonicalHeaderKey(name) == "Content-Length":
			return usageErrorf("Content-Length is computed from the body")
		}
		f.Header.Add(name, value)
	}
	return nil
}

var sha256Sum = regexp.MustCompile("^[0-9a-f]{64}$")

// setAccept takes sums, not passwords: other users can read command lines and lists of faults.
func setAccept(f *Fault, values []string) error {
	if slices.ContainsFunc(values, func(sum string) bool { return !sha256Sum.MatchString(sum) }) {
		return usageErrorf("want the 64 digits that printf %%s user:password | sha256sum prints")
	}
	f.Accept = values
	return nil
}

func setProfile(f *Fault, values []string) error {
	profile, found := registryprofile.Profiles[values[0]]
	if !found {
		return usageErrorf("want one of %s", list(profileNames()))
	}
	f.Name, f.Profile = values[0], &profile
	return nil
}

func profileNames() []string { return slices.Sorted(maps.Keys(registryprofile.Profiles)) }

func setBody(f *Fault, values []string) error {
	f.Body = values[0]
	return nil
}

func setRate(f *Fault, values []string) (err error) {
	if f.Rate, err = bytesOf(values[0]); err == nil && f.Rate == 0 {
		return usageErrorf("want at least 1 byte per second, or use kind hang, which sends nothing")
	}
	return err
}

func setAfter(f *Fault, values []string) error {
	after, err := bytesOf(values[0])
	f.After = &after
	return err
}

func bytesOf(text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return 0, usageErrorf("want a number of bytes, for example 64Ki or 1M")
	}
	return quantity.Value(), nil
}

// New returns a fault of a target ("upstream/alpha") and a kind ("status") with the given values of
// options, or a *UsageError. It does not check whether the target exists: Target.Choose does.
func New(target, kind string, given map[string][]string) (Fault, error) {
	at, err := ParseTarget(target)
	if err != nil {
		return Fault{}, err
	}
	d, err := definitionOf(at.Role, Kind(kind))
	if err != nil {
		return Fault{}, err
	}
	f := Fault{Target: at, Kind: d.kind, On: d.on}
	if err := d.check(given); err != nil {
		return Fault{}, err
	}
	for _, option := range options {
		values := given[option.Name]
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 && !option.Repeated {
			return Fault{}, usageErrorf("--%s is given %d times, want once", option.Name, len(values))
		}
		if err := option.set(&f, values); err != nil {
			return Fault{}, usageErrorf("--%s %q: %v", option.Name, strings.Join(values, ", "), err)
		}
	}
	if _, given := given["body"]; !given && f.Kind == Status {
		f.Body = http.StatusText(f.Status) + "\n"
	}
	return f, nil
}

func (d definition) check(given map[string][]string) error {
	for _, option := range options {
		if len(given[option.Name]) > 0 && !slices.Contains(d.options(), option.Name) {
			return usageErrorf("%s of %s has no option --%s: %s", d.kind, d.role, option.Name, d.accepted())
		}
	}
	if d.needs != "" && len(given[d.needs]) == 0 {
		return usageErrorf("%s of %s requires --%s: %s", d.kind, d.role, d.needs, d.accepted())
	}
	return nil
}

func (d definition) options() []string {
	if d.oneShot || d.kind == Loss { // no node can start a lost machine when the time is over
		return d.takes
	}
	return append(slices.Clone(d.takes), "for")
}

func (d definition) accepted() string {
	if len(d.options()) == 0 {
		return "it has no options"
	}
	return "its options are --" + strings.Join(d.options(), ", --")
}
