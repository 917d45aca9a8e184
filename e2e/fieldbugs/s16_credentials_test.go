package fieldbugs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// The upstream asks for what the Shoot has.
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
	if hex.EncodeToString(sum[:]) != accepted || len(secret.StringData) != 2 {
		t.Errorf("the upstream asks for %s, the Shoot has %x", accepted, sum)
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
		text := strings.NewReplacer("METHOD", r[0], "KIND", r[1], "REPOSITORY", r[2], "STATUS", r[3], "SHOWN", r[4], "ASKER", r[5]).Replace(record)
		log.WriteString(`{"source":"upstream/alpha","text":"` + strings.ReplaceAll(text, `"`, `\"`) + `"}` + "\n")
	}
	log.WriteString(`{"source":"upstream/alpha","text":"no record"}` + "\n")
	given, shown, err := blobsGiven(log.String(), img)
	if given != 2 || shown != 1 || err != nil {
		t.Errorf("%d given, %d to credentials, %v", given, shown, err)
	}
	if _, _, err := blobsGiven("not JSON\n", img); err == nil {
		t.Error("what cannot be read is no log without requests")
	}
}
