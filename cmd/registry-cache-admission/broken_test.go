package main

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestValidateNamesTheField breaks one field at a time and expects one line of output that begins
// with the field's path.
func TestValidateNamesTheField(t *testing.T) {
	cache := func(fields string) string { return `[{upstream: a.test, ` + fields + `}]` }
	for name, test := range map[string]struct{ caches, field string }{
		"no caches":                {`[]`, "caches"},
		"caches as object":         {`{}`, "caches"},
		"no upstream":              {`[{remoteURL: "https://a.test"}]`, "caches[0].upstream"},
		"upstream as number":       {`[{upstream: 5}]`, "caches[0].upstream"},
		"upstream with scheme":     {`[{upstream: "https://a.test"}]`, "caches[0].upstream"},
		"upstream with path":       {`[{upstream: a.test/library}]`, "caches[0].upstream"},
		"upstream in upper case":   {`[{upstream: A.test}]`, "caches[0].upstream"},
		"upstream with bad port":   {`[{upstream: "a.test:70000"}]`, "caches[0].upstream"},
		"upstream with underscore": {`[{upstream: a_b.test}]`, "caches[0].upstream"},
		"upstream is a bare IPv6":  {`[{upstream: "::1"}]`, "caches[0].upstream"},
		"upstream twice":           {`[{upstream: a.test}, {upstream: a.test}]`, "caches[1].upstream"},
		"upstream with 443 twice":  {`[{upstream: "a.test:443"}, {upstream: a.test}]`, "caches[1].upstream"},
		"Docker Hub twice":         {`[{upstream: docker.io}, {upstream: index.docker.io}]`, "caches[1].upstream"},
		"unknown field":            {cache(`upstrem: x`), "caches[0].upstrem"},
		"misplaced field":          {cache(`tls: true`), "caches[0].tls"},
		"field in wrong case":      {cache(`remoteUrl: "https://a.test"`), "caches[0].remoteUrl"},
		"remoteURL without scheme": {cache(`remoteURL: a.test`), "caches[0].remoteURL"},
		"remoteURL of ftp":         {cache(`remoteURL: "ftp://a.test"`), "caches[0].remoteURL"},
		"remoteURL with user":      {cache(`remoteURL: "https://u:p@a.test"`), "caches[0].remoteURL"},
		"remoteURL with path":      {cache(`remoteURL: "https://a.test/v2"`), "caches[0].remoteURL"},
		"remoteURL with query":     {cache(`remoteURL: "https://a.test?x=1"`), "caches[0].remoteURL"},
		"volume as size":           {cache(`volume: 10Gi`), "caches[0].volume"},
		"size of nothing":          {cache(`volume: {size: 0}`), "caches[0].volume.size"},
		"negative size":            {cache(`volume: {size: -1Gi}`), "caches[0].volume.size"},
		"size in words":            {cache(`volume: {size: ten}`), "caches[0].volume.size"},
		"empty class":              {cache(`volume: {storageClassName: ""}`), "caches[0].volume.storageClassName"},
		"class with blank":         {cache(`volume: {storageClassName: "a b"}`), "caches[0].volume.storageClassName"},
		"negative ttl":             {cache(`garbageCollection: {ttl: -1h}`), "caches[0].garbageCollection.ttl"},
		"ttl in days":              {cache(`garbageCollection: {ttl: 7d}`), "caches[0].garbageCollection.ttl"},
		"ttl as number":            {cache(`garbageCollection: {ttl: 7}`), "caches[0].garbageCollection.ttl"},
		"empty reference":          {cache(`secretReferenceName: ""`), "caches[0].secretReferenceName"},
		"reference to nothing":     {cache(`secretReferenceName: absent`), "caches[0].secretReferenceName"},
		"reference to a ConfigMap": {cache(`secretReferenceName: map`), "caches[0].secretReferenceName"},
		"mutable Secret":           {cache(`secretReferenceName: mutable`), "caches[0].secretReferenceName"},
		"Secret without password":  {cache(`secretReferenceName: half`), "caches[0].secretReferenceName"},
		"Secret with empty user":   {cache(`secretReferenceName: empty`), "caches[0].secretReferenceName"},
		"Secret with a third key":  {cache(`secretReferenceName: more`), "caches[0].secretReferenceName"},
		"empty bundle reference":   {cache(`caBundleSecretReferenceName: ""`), "caches[0].caBundleSecretReferenceName"},
		"bundle of nothing":        {cache(`caBundleSecretReferenceName: absent`), "caches[0].caBundleSecretReferenceName"},
		"bundle that is not PEM":   {cache(`caBundleSecretReferenceName: bundle`), "caches[0].caBundleSecretReferenceName"},
		"credentials as object":    {cache(`secretReferenceName: {name: creds}`), "caches[0].secretReferenceName"},
		"httpProxy without scheme": {cache(`proxy: {httpProxy: "p.test:3128"}`), "caches[0].proxy.httpProxy"},
		"httpProxy of socks":       {cache(`proxy: {httpProxy: "socks5://p.test"}`), "caches[0].proxy.httpProxy"},
		"httpsProxy with user":     {cache(`proxy: {httpsProxy: "http://u:p@p.test"}`), "caches[0].proxy.httpsProxy"},
		"httpsProxy with path":     {cache(`proxy: {httpsProxy: "http://p.test/proxy.pac"}`), "caches[0].proxy.httpsProxy"},
		"noProxy for all":          {cache(`proxy: {noProxy: "*"}`), "caches[0].proxy.noProxy"},
		"noProxy with URL":         {cache(`proxy: {noProxy: "http://a.test"}`), "caches[0].proxy.noProxy"},
		"noProxy with bad CIDR":    {cache(`proxy: {noProxy: "10.0.0.0/40"}`), "caches[0].proxy.noProxy"},
		"noProxy with empty entry": {cache(`proxy: {noProxy: "a.test,,b.test"}`), "caches[0].proxy.noProxy"},
		"unknown field of proxy":   {cache(`proxy: {allProxy: "http://p.test"}`), "caches[0].proxy.allProxy"},
		"tls as text":              {cache(`http: {tls: "yes"}`), "caches[0].http.tls"},
		"http as flag":             {cache(`http: true`), "caches[0].http"},
		"availability as number":   {cache(`highAvailability: {enabled: 2}`), "caches[0].highAvailability.enabled"},
		"replicas":                 {cache(`highAvailability: {replicas: 2}`), "caches[0].highAvailability.replicas"},
		"suffix in upper case":     {cache(`serviceNameSuffix: Hub`), "caches[0].serviceNameSuffix"},
		"suffix with dot":          {cache(`serviceNameSuffix: a.b`), "caches[0].serviceNameSuffix"},
		"suffix too long":          {cache(`serviceNameSuffix: ` + strings.Repeat("a", 55)), "caches[0].serviceNameSuffix"},
		"suffix twice":             {`[{upstream: a.test, serviceNameSuffix: x}, {upstream: b.test, serviceNameSuffix: x}]`, "caches[1].serviceNameSuffix"},
		"suffix of another's name": {`[{upstream: a.test, serviceNameSuffix: b-test}, {upstream: b.test}]`, "caches[0].serviceNameSuffix"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, notes := validate(t, shootNamed("a", test.caches, referenced)+secrets, "-f", "-", "--resources", t.TempDir())
			want := "spec.extensions[1].providerConfig." + test.field + ": "
			if code != program.ExitFailed || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
				t.Errorf("exit code %d, standard output %q, standard error %q; want one line %q", code, out, notes, want)
			}
		})
	}
}

// TestValidateNamesTheFieldOfAnUpdate expects one line with the field's path for each forbidden
// update.
func TestValidateNamesTheFieldOfAnUpdate(t *testing.T) {
	for name, test := range map[string]struct{ old, caches, field string }{
		"class changes":      {`[{upstream: a.test, volume: {storageClassName: a}}]`, `[{upstream: a.test, volume: {storageClassName: b}}]`, "caches[0].volume.storageClassName"},
		"class is taken off": {`[{upstream: a.test, volume: {storageClassName: a}}]`, `[{upstream: a.test}]`, "caches[0].volume.storageClassName"},
		"collection again":   {`[{upstream: a.test, garbageCollection: {ttl: 0s}}]`, `[{upstream: a.test}]`, "caches[0].garbageCollection.ttl"},
		"Service of another": {`[{upstream: a.test}]`, `[{upstream: b.test, serviceNameSuffix: a-test}]`, "caches[0].serviceNameSuffix"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, notes := validate(t, shootNamed("a", test.caches), "-f", "-", "--old", write(t, "old.yaml", shootNamed("a", test.old)))
			want := "spec.extensions[1].providerConfig." + test.field + ": "
			if code != program.ExitFailed || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
				t.Errorf("exit code %d, standard output %q, standard error %q; want one line %q", code, out, notes, want)
			}
		})
	}
}

const referenced = `  resources:
  - {name: map, resourceRef: {apiVersion: v1, kind: ConfigMap, name: map}}
  - {name: mutable, resourceRef: {apiVersion: v1, kind: Secret, name: mutable}}
  - {name: half, resourceRef: {apiVersion: v1, kind: Secret, name: half}}
  - {name: empty, resourceRef: {apiVersion: v1, kind: Secret, name: empty}}
  - {name: more, resourceRef: {apiVersion: v1, kind: Secret, name: more}}
  - {name: bundle, resourceRef: {apiVersion: v1, kind: Secret, name: bundle}}
`

var secrets = "---\n" + strings.Join([]string{
	secretNamed("mutable", "stringData: {username: u, password: p}\n"),
	secretNamed("half", "immutable: true\nstringData: {username: u}\n"),
	secretNamed("empty", "immutable: true\nstringData: {username: '', password: p}\n"),
	secretNamed("more", "immutable: true\nstringData: {username: u, password: p, email: e}\n"),
	secretNamed("bundle", "immutable: true\nstringData: {bundle.crt: certificate}\n"),
}, "---\n")
