package spec

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Effect describes what the target does, for example "answers 429 to all requests".
func (f Fault) Effect() string {
	switch f.Kind {
	case Status:
		return fmt.Sprintf("answers %d to %s", f.Status, f.requests())
	case Latency:
		if f.On == "" {
			return fmt.Sprintf("answers after %s", time.Duration(f.Delay))
		}
		return fmt.Sprintf("answers %s after %s", f.requests(), time.Duration(f.Delay))
	case Hang:
		return "accepts and never answers " + f.requests()
	case Slow:
		return fmt.Sprintf("answers %s with %s bytes per second", f.requests(), bytes(f.Rate))
	case Reset:
		return fmt.Sprintf("resets the connection after %s of the answer to %s", f.after(), f.requests())
	case Truncate:
		return fmt.Sprintf("truncates the answer to %s after %s", f.requests(), f.after())
	case WrongBytes:
		return "answers with wrong content to " + f.requests()
	case Credentials:
		return "requires credentials for " + f.requests()
	case Token:
		return "requires a bearer token"
	case Profile:
		return "answers like " + f.Name
	}
	return cmp.Or(effects[f.Kind], f.shape().means, string(f.Kind))
}

// effects contains short texts for kinds whose text in the catalog is too long for Effect.
var effects = map[Kind]string{
	DNS:             "has a host name that does not resolve in the shoot",
	ExpiredTLS:      "has an expired certificate",
	Stop:            "accepts connections and does not answer",
	RecreateService: "has a new Service",
	DiskFull:        "has a full volume",
	KubeletStop:     "has no running kubelet",
	Loss:            "is lost, with its Node object",
}

func (f Fault) requests() string {
	if f.On == Manifests || f.On == Blobs {
		return "requests for " + string(f.On)
	}
	return "all requests"
}

func (f Fault) after() string {
	if f.After == nil {
		return "half"
	}
	return bytes(*f.After) + " bytes"
}

func bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// String describes the fault in one line.
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
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tTARGET\tKIND\tEFFECT\tUNTIL")
	for _, f := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.ID, f.Target, f.Kind, f.Effect(), f.end())
	}
	return table.Flush()
}

// Catalog lists all targets and kinds for a help text.
func Catalog() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, s := range shapes {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", s.role.targets(), s.kind, s.means)
	}
	_ = table.Flush() // a strings.Builder does not fail
	return text.String()
}

func (r Role) targets() string {
	switch r {
	case Seed, Shoot:
		return Target{r, API}.String()
	case Extension:
		return Target{Role: r}.String()
	default:
		return Target{r, "…"}.String()
	}
}
