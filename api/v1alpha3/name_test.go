package v1alpha3

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// longest is a host of 253 characters, the maximum of DNS.
var longest = strings.Repeat("a123456789.", 22) + "example.com"

func TestName(t *testing.T) {
	for upstream, want := range map[string]string{
		"docker.io":           "registry-docker-io",
		"alpha.upstream.test": "registry-alpha-upstream-test",
		"localhost":           "registry-localhost",
	} {
		if got := Name(upstream); got != want {
			t.Errorf("Name(%q) = %q, want %q", upstream, got, want)
		}
	}
	hashed := regexp.MustCompile(`^registry-x-5000--[0-9a-f]{8}$`)
	if got := Name("x:5000"); !hashed.MatchString(got) {
		t.Errorf("Name(x:5000) = %q, want it to match %s", got, hashed)
	}
}

// upstreams returns hosts to which a naive mapping would give the same or an invalid name.
func upstreams() []string {
	return []string{
		"a.b-c", "a-b.c", "a.b.c", "a-b-c", "x:5000", "x-5000", "x.5000", "x_5000",
		longest, longest[1:], longest + ":5000", longest[:len(longest)-1] + "n",
		strings.Repeat("a", 60) + ".b", strings.Repeat("a", 60) + ".c",
		"xn--bcher-kva.example", "127.0.0.1:5000", "[::1]:5000", "[::1]:5001",
	}
}

func TestNamesAreUniqueAndValid(t *testing.T) {
	names, labels := map[string]string{}, map[string]string{}
	for _, upstream := range upstreams() {
		name := Name(upstream)
		if errs := validation.IsDNS1035Label(name); len(errs) > 0 {
			t.Errorf("Name(%q) = %q: %v", upstream, name, errs)
		}
		for _, suffix := range []string{"-0", "-" + strings.Repeat("f", 10)} {
			if errs := validation.IsValidLabelValue(name + suffix); len(errs) > 0 {
				t.Errorf("Name(%q) + %q: %v", upstream, suffix, errs)
			}
		}
		if other, taken := names[name]; taken {
			t.Errorf("%q and %q share the name %q", upstream, other, name)
		}
		names[name] = upstream

		label := HostLabel(upstream)
		if errs := validation.IsValidLabelValue(label); len(errs) > 0 {
			t.Errorf("HostLabel(%q) = %q: %v", upstream, label, errs)
		}
		if other, taken := labels[label]; taken && !sameButUnderscore(upstream, other) {
			t.Errorf("%q and %q share the label %q", upstream, other, label)
		}
		labels[label] = upstream
	}
}

// sameButUnderscore returns whether a and b differ only in ":" and "_". Such a pair may have the
// same label, because Validate rejects a host with an underscore.
func sameButUnderscore(a, b string) bool {
	return strings.ReplaceAll(a, ":", "_") == strings.ReplaceAll(b, ":", "_")
}

func TestHostLabelKeepsTheHost(t *testing.T) {
	for upstream, want := range map[string]string{
		"alpha.upstream.test": "alpha.upstream.test",
		"x-y.example:5000":    "x-y.example_5000",
	} {
		if got := HostLabel(upstream); got != want {
			t.Errorf("HostLabel(%q) = %q, want %q", upstream, got, want)
		}
	}
}

func ExampleName() {
	fmt.Println(Name("europe-docker.pkg.dev"))
	// Output: registry-europe-docker-pkg-dev--e6155480
}

// TestContract repeats the names, so that none of them changes by accident.
func TestContract(t *testing.T) {
	for want, got := range map[string]string{
		"registry-cache":             ExtensionType,
		"extension-registry-cache":   ManagedResourceCaches,
		"extension-registry-cleaner": ManagedResourceCleaner,
		"registry-cleaner":           CleanerDaemonSet,
		"upstream-host":              LabelUpstreamHost,
		"upstream":                   AnnotationUpstream,
		"remote-url":                 AnnotationRemoteURL,
		"NodesCleaned":               ConditionNodesCleaned,
	} {
		if got != want {
			t.Errorf("got %q, want %q: objects in running Shoots have this name", got, want)
		}
	}
	if CachePort != 5000 || CacheDebugPort != 5001 {
		t.Errorf("ports %d and %d, want 5000 and 5001", CachePort, CacheDebugPort)
	}
}
