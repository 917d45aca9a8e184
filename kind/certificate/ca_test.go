package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/utils/secrets"
)

func ensure(t *testing.T, dir string) *CA {
	t.Helper()
	ca, err := Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestEnsure(t *testing.T) {
	for _, tc := range []struct {
		name  string
		state func(t *testing.T, dir string)
		same  bool
	}{
		{"kept", func(t *testing.T, dir string) { ensure(t, dir) }, true},
		{"creation was interrupted", func(t *testing.T, dir string) { write(t, dir, map[string][]byte{keyFile: []byte("half")}) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state", "certificates")
			tc.state(t, dir)
			before, _ := os.ReadFile(filepath.Join(dir, certificateFile))
			second := ensure(t, dir)
			if same := bytes.Equal(before, second.PEM()); same != tc.same {
				t.Errorf("same CA: %v, want %v", same, tc.same)
			}
			if stored, _ := os.ReadFile(filepath.Join(dir, certificateFile)); !bytes.Equal(stored, second.PEM()) {
				t.Error("a different CA is stored")
			}
		})
	}
}

func TestEnsureFiles(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir)
	for name, want := range map[string]fs.FileMode{keyFile: 0o600, certificateFile: 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("files in the folder: %v", entries)
	}
}

func TestEnsureKeepsWhatItCannotRead(t *testing.T) {
	good, other := newCAFiles(t), newCAFiles(t)
	for name, content := range map[string]string{"garbage": "x", "other key": string(other[keyFile])} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, keyFile)
			write(t, dir, map[string][]byte{certificateFile: good[certificateFile], keyFile: []byte(content)})
			if _, err := Ensure(dir); err == nil || !strings.Contains(err.Error(), "remove "+dir) {
				t.Errorf("error %v, want one that says what to do", err)
			}
			if got, _ := os.ReadFile(path); string(got) != content {
				t.Error("the file was changed")
			}
		})
	}
}

func TestServerIsTrusted(t *testing.T) {
	ca := ensure(t, t.TempDir())
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM())
	pair, err := ca.Server("alpha.upstream.test", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	defer server.Close()
	for name, trusted := range map[string]bool{"alpha.upstream.test": true, "localhost": true, "beta.upstream.test": false} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name}}
		response, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != trusted {
			t.Errorf("%s: error %v, want trusted: %v", name, err, trusted)
		}
	}
}

// newCAFiles returns the files of a new CA.
func newCAFiles(t *testing.T) map[string][]byte {
	t.Helper()
	config := secrets.CertificateSecretConfig{Name: "testbed", CommonName: "short", CertType: secrets.CACert}
	ca, err := config.GenerateCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{keyFile: ca.PrivateKeyPEM, certificateFile: ca.CertificatePEM}
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoad: Load neither creates nor replaces a CA.
func TestLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was created: %v", err)
	}
	files := newCAFiles(t)
	write(t, dir, files)
	loaded, err := Load(dir)
	if err != nil || !bytes.Equal(loaded.PEM(), files[certificateFile]) {
		t.Errorf("the CA was replaced or cannot be read: %v", err)
	}
}
