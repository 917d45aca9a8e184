package pull

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// stalled is from when on a pull past the cache counts as one that stalls, in seconds.
const stalled = 5

// Judge gives the report its verdict: one sentence on who served the pulls, and if it was not the cache, what kept the nodes from
// it. caches are the addresses of the image's caches as the cluster has them now, <host>:<port>; nil if they are not known.
func (r *Report) Judge(caches []string) { r.Verdict = r.verdict(caches) }

func (r *Report) verdict(caches []string) string {
	if len(r.Pulls) == 0 {
		return ""
	}
	if r.Total.Failed > 0 {
		return fmt.Sprintf("failed: %d of %s", r.Total.Failed, count(r.Total.Pulls, "pull"))
	}
	if i := slices.IndexFunc(r.Pulls, func(p Pull) bool { return p.Fallback }); i >= 0 {
		return r.past(r.Pulls[i], caches)
	}
	if i := slices.IndexFunc(r.Pulls, func(p Pull) bool { return len(p.Mirrors) == 0 }); i >= 0 {
		return fmt.Sprintf("direct: %s has no mirror of the upstream", r.Pulls[i].Node)
	}
	hits, misses := r.Total.Served[CacheHit].Objects, r.Total.Served[CacheMiss].Objects
	if hits+misses == 0 {
		return "nothing to fetch: the nodes had it"
	}
	return fmt.Sprintf("through the cache: %s from its store, %d fetched by it, slowest pull %.1fs", count(hits, "object"), misses, r.Total.Slowest)
}

// past says why a node went to the upstream although it has a mirror.
func (r *Report) past(p Pull, caches []string) string {
	word := "past the cache"
	if r.Total.Slowest > stalled {
		word = "pulls stall"
	}
	mirrors := strings.Join(p.Mirrors, ", ")
	// The report has only what hosts.toml says: a containerd that does not read it asks no mirror.
	why := fmt.Sprintf("%s went to the upstream: its mirror %s did not serve all of it, or was not asked", p.Node, mirrors)
	if caches != nil && !slices.ContainsFunc(p.Mirrors, func(mirror string) bool { return slices.Contains(caches, address(mirror)) }) {
		why = fmt.Sprintf("%s asks %s first, an address that no cache has: %s; then the upstream", p.Node, mirrors, whereabouts(caches))
	}
	return fmt.Sprintf("%s: %s; slowest pull %.1fs, %s of %s", word, why, r.Total.Slowest, count(r.Total.Fallbacks, "fallback"), count(r.Total.Pulls, "pull"))
}

func whereabouts(caches []string) string {
	if len(caches) == 0 {
		return "there is no cache of this upstream now"
	}
	return "it is at " + strings.Join(caches, ", ") + " now"
}

// address is host and port of a mirror's URL.
func address(mirror string) string {
	parsed, err := url.Parse(mirror)
	if err != nil {
		return mirror
	}
	return parsed.Host
}
