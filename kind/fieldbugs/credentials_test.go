package fieldbugs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// TestAccepted checks that the upstream accepts the credentials that are in the Shoot's manifest.
func TestAccepted(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("../..", Credentials))
	if err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	first, _, _ := strings.Cut(string(content), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &secret); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(secret.StringData["username"] + ":" + secret.StringData["password"]))
	if hex.EncodeToString(sum[:]) != acceptedHash || len(secret.StringData) != 2 {
		t.Errorf("the upstream asks for %s, the Shoot has %x", acceptedHash, sum)
	}
}

// TestTokenRequests checks that nothing but token requests with credentials counts.
func TestTokenRequests(t *testing.T) {
	r := rigOf(func(string) string {
		return `{"path":"/token","authorization":true}` + "\n" + `{"path":"/token","authorization":false}` + "\n" +
			`{"path":"/v2/","authorization":true}` + "\n" + `{"path":"/token","authorization":true}` + "\n"
	})
	if count, err := r.tokenRequests(t.Context(), "alpha"); count != 2 || err != nil {
		t.Errorf("%d, %v", count, err)
	}
}

// TestForeignRealm checks that earlier requests do not count, and that it is an error if no request
// reaches the upstream's own realm.
func TestForeignRealm(t *testing.T) {
	const claim = "no credentials reach the host of an unrelated realm"
	const request = `{"path":"/token","authorization":true}` + "\n"
	for name, test := range map[string]struct {
		own, foreign  int // requests during the fault
		proves, holds bool
	}{
		"to its own realm only": {1, 0, true, true},
		"to both":               {1, 2, true, false},
		"to none":               {0, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{"alpha": 3, "gamma": 4}
			uid, realm := 0, ""
			r := rigOf(func(line string) string {
				switch {
				case line == "shoot get --json":
					return readyShoot
				case strings.HasPrefix(line, "push"):
					return `{"reference": "alpha.upstream.test/testbed/a:latest"}`
				case strings.HasPrefix(line, "docker logs registry-cache-upstream-"):
					return strings.Repeat(request, seen[strings.TrimPrefix(line, "docker logs registry-cache-upstream-")])
				case strings.HasPrefix(line, "fault add upstream/alpha"):
					_, realm, _ = strings.Cut(line, `realm="http://`)
				case strings.HasPrefix(line, "fault add cache/alpha kill"):
					uid++
					if strings.HasPrefix(realm, host("alpha")+"/token") {
						seen["alpha"] += test.own
					} else if strings.HasPrefix(realm, foreignHost+"/token") {
						seen["gamma"] += test.foreign
					}
				case strings.HasPrefix(line, "kubectl shoot get"):
					return fmt.Sprintf(`{"items": [{"metadata": {"uid": "%d"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`, uid)
				}
				return "{}"
			})
			err := r.unrelatedRealm(t.Context())
			if test.proves {
				wantClaim(t, r, err, claim, test.holds)
			} else if err == nil || !strings.Contains(err.Error(), "proves nothing") {
				t.Errorf("%v, want that it proves nothing", err)
			}
		})
	}
}

func TestBlobsGiven(t *testing.T) {
	img := pull.Pushed{Reference: "alpha.upstream.test:5000/testbed/a:latest"}
	const record = `{"method":"METHOD","kind":"KIND","repository":"REPOSITORY","status":STATUS,"authorization":SHOWN,"asker":"ASKER"}`
	var log strings.Builder
	for _, r := range [][]string{
		{"GET", "blob", "testbed/a", "200", "true", "cache"},
		{"GET", "blob", "testbed/a", "200", "false", "cache"},
		{"GET", "blob", "testbed/a", "401", "true", "cache"},
		{"HEAD", "blob", "testbed/a", "200", "true", "cache"},
		{"GET", "manifest", "testbed/a", "200", "true", "cache"},
		{"GET", "blob", "testbed/b", "200", "true", "cache"},
		{"GET", "blob", "testbed/a", "200", "false", "harness"},
	} {
		log.WriteString(strings.NewReplacer("METHOD", r[0], "KIND", r[1], "REPOSITORY", r[2], "STATUS", r[3], "SHOWN", r[4], "ASKER", r[5]).Replace(record) + "\n")
	}
	given, shown, err := blobsGiven(log.String(), img)
	if given != 2 || shown != 1 || err != nil {
		t.Errorf("%d given, %d to credentials, %v", given, shown, err)
	}
	if _, _, err := blobsGiven("not JSON\n", img); err == nil {
		t.Error("what cannot be read is no log without requests")
	}
}
