package pull

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// stalled is when a pull that bypasses the cache counts as stalled, in seconds.
const stalled = 5

// Judge sets the verdict of the report: who served the pulls, and if not the cache, why. caches are
// the current addresses (<host>:<port>) of the image's caches, or nil if they are unknown.
func (r *Report) Judge(caches []string) { r.Verdict = r.verdict(caches) }

func (r *Report) verdict(caches []string) string {
	if len(r.Pulls) == 0 {
		return ""
	}
	if r.Total.Failed > 0 {
		return fmt.Sprintf("failed: %d of %s", r.Total.Failed, count(r.Total.Pulls, "pull"))
	}
	if i := slices.IndexFunc(r.Pulls, func(p Pull) bool { return p.Fallback }); i >= 0 {
		return r.bypassed(r.Pulls[i], caches)
	}
	if i := slices.IndexFunc(r.Pulls, func(p Pull) bool { return len(p.Mirrors) == 0 }); i >= 0 {
		return fmt.Sprintf("direct: %s has no mirror for the upstream", r.Pulls[i].Node)
	}
	hits, misses := r.Total.Served[CacheHit].Objects, r.Total.Served[CacheMiss].Objects
	if hits+misses == 0 {
		return "nothing to fetch: the nodes already had the image"
	}
	return fmt.Sprintf("served by the cache: %s from its store, %d fetched from the upstream, slowest pull %.1fs",
		count(hits, "object"), misses, r.Total.Slowest)
}

// bypassed says why a node asked the upstream although it has a mirror.
func (r *Report) bypassed(p Pull, caches []string) string {
	word := "cache bypassed"
	if r.Total.Slowest > stalled {
		word = "pulls stall"
	}
	mirrors := strings.Join(p.Mirrors, ", ")
	isCache := func(mirror string) bool { return slices.Contains(caches, address(mirror)) }
	var why string
	switch {
	case caches == nil || slices.ContainsFunc(p.Mirrors, isCache):
		// The mirrors are those in hosts.toml. A containerd that does not read the file asks none of
		// them.
		why = fmt.Sprintf("%s used the upstream: its mirror %s did not serve everything, or was not asked", p.Node, mirrors)
	case len(caches) == 0:
		why = fmt.Sprintf("%s asks %s before the upstream, but the upstream has no cache now", p.Node, mirrors)
	default:
		why = fmt.Sprintf("%s asks %s before the upstream, but the cache is now at %s", p.Node, mirrors, strings.Join(caches, ", "))
	}
	return fmt.Sprintf("%s: %s; slowest pull %.1fs, %s of %s", word, why, r.Total.Slowest, count(r.Total.Fallbacks, "fallback"),
		count(r.Total.Pulls, "pull"))
}

// address returns host and port of a mirror's URL.
func address(mirror string) string {
	parsed, err := url.Parse(mirror)
	if err != nil {
		return mirror
	}
	return parsed.Host
}
