package spec

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

type given = map[string][]string

var sum = strings.Repeat("0a", 32)

func TestNew(t *testing.T) {
	quay := registryprofile.Profiles["quay"]
	for _, tc := range []struct {
		name, target, kind string
		given              map[string][]string
		want               Fault
	}{
		{
			"status", "upstream/alpha", "status", given{"status": {"429"}, "header": {"Retry-After=30", "X-a=b=c"}, "for": {"2m"}},
			Fault{
				Kind: Status, On: All, Status: 429, Body: "Too Many Requests\n", For: Duration(2 * time.Minute),
				Header: http.Header{"Retry-After": {"30"}, "X-A": {"b=c"}},
			},
		},
		{"no body", "upstream/alpha", "status", given{"status": {"403"}, "body": {""}}, Fault{Kind: Status, On: All, Status: 403}},
		{"hang", "upstream/a", "hang", given{"on": {"manifests"}}, Fault{Kind: Hang, On: Manifests}},
		{"slow", "upstream/a", "slow", given{"rate": {"64Ki"}}, Fault{Kind: Slow, On: Blobs, Rate: 65536}},
		{"truncate", "upstream/a", "truncate", nil, Fault{Kind: Truncate, On: Blobs}},
		{"truncate at once", "upstream/a", "truncate", given{"after": {"0"}}, Fault{Kind: Truncate, On: Blobs, After: new(int64)}},
		{"credentials", "upstream/a", "credentials", given{"accept": {sum}}, Fault{Kind: Credentials, On: All, Accept: []string{sum}}},
		{"profile", "upstream/a", "profile", given{"name": {"quay"}}, Fault{Kind: Profile, On: All, Name: "quay", Profile: &quay}},
		{"blackhole", "cache/alpha.upstream.test", "blackhole", nil, Fault{Kind: Blackhole}},
		{"loss", "node/worker2", "loss", nil, Fault{Kind: Loss}},
		{"for a time", "cache/a", "refuse", given{"for": {"1m"}}, Fault{Kind: Refuse, For: Duration(time.Minute)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := New(tc.target, tc.kind, tc.given)
			if err != nil {
				t.Fatal(err)
			}
			if got.Target.String() != tc.target {
				t.Errorf("target %s, want %s", got.Target, tc.target)
			}
			got.Target = Target{}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		name, target, kind string
		given              map[string][]string
		want               string
	}{
		{"no role", "alpha", "hang", nil, "want <role>/<name>, for example upstream/alpha, with one of the roles upstream, cache, node"},
		{"no name", "upstream/", "hang", nil, "want <role>/<name>"},
		{"unknown role", "pod/x", "hang", nil, `unknown role "pod", use one of upstream, cache, node`},
		{"unknown kind", "upstream/alpha", "explode", nil, `upstream has no fault "explode", use one of status, hang, slow`},
		{"a loss with an end", "node/worker", "loss", given{"for": {"1m"}}, "loss of node has no option --for: it has no options"},
		{"kind of another role", "node/worker", "hang", nil, `node has no fault "hang", use one of loss`},
		{"option of another kind", "upstream/alpha", "status", given{"status": {"429"}, "rate": {"1"}}, "status of upstream has no option --rate: its options are --status, --header, --body, --on, --for"},
		{"duration of a one-shot fault", "cache/alpha", "kill", given{"for": {"1m"}}, "kill of cache has no option --for: it has no options"},
		{"no status", "upstream/alpha", "status", nil, "requires --status"},
		{"no rate", "upstream/alpha", "slow", nil, "requires --rate"},
		{"no credentials", "upstream/alpha", "credentials", nil, "requires --accept"},
		{"credentials in clear", "upstream/alpha", "credentials", given{"accept": {"user:password"}}, "64 digits"},
		{"no profile", "upstream/alpha", "profile", nil, "requires --name"},
		{"unknown profile", "upstream/alpha", "profile", given{"name": {"quai"}}, "want one of acr, artifactory, docker-hub"},
		{"twice", "upstream/alpha", "hang", given{"for": {"1s", "2s"}}, "--for is given 2 times, want once"},
		{"no time", "upstream/alpha", "hang", given{"for": {"soon"}}, `--for "soon": want a duration`},
		{"negative time", "upstream/alpha", "hang", given{"for": {"-1s"}}, "want a duration"},
		{"too long", "upstream/alpha", "hang", given{"for": {"25h"}}, "to 24h"},
		{"a success", "upstream/alpha", "status", given{"status": {"200"}}, "want an HTTP status"},
		{"no body possible", "upstream/alpha", "status", given{"status": {"304"}}, "want an HTTP status"},
		{"no header", "upstream/alpha", "status", given{"status": {"500"}, "header": {"Retry-After: 3"}}, "want NAME=VALUE"},
		{"injected header", "upstream/alpha", "status", given{"status": {"500"}, "header": {"A=b\r\nC: d"}}, "line break"},
		{"length", "upstream/alpha", "status", given{"status": {"500"}, "header": {"content-length=1"}}, "is computed from the body"},
		{"no requests", "upstream/alpha", "hang", given{"on": {"tags"}}, "want one of manifests, blobs, all"},
		{"no size", "upstream/alpha", "truncate", given{"after": {"half"}}, "want a number of bytes"},
		{"negative size", "upstream/alpha", "truncate", given{"after": {"-1"}}, "want a number of bytes"},
		{"no bytes", "upstream/alpha", "slow", given{"rate": {"0"}}, "use kind hang"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(tc.target, tc.kind, tc.given)
			var usageError *UsageError
			if !errors.As(err, &usageError) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want a UsageError with %q", err, tc.want)
			}
		})
	}
}
