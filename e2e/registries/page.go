package registries

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

//go:embed introduction.txt
var introduction string

// Page renders docs/registries.md, with a row for each known profile.
func Page(all []Result) string {
	var page strings.Builder
	page.WriteString(introduction)
	page.WriteString("| registry | what is special | cold | warm | expired token | outage | source |\n")
	page.WriteString("| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(registryprofile.Profiles)) {
		profile, result := registryprofile.Profiles[name], find(all, name)
		renewed := seconds(result.Renewed)
		if !UsesTokens(profile) {
			renewed = "no token"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s | %s |\n", name, profile.Description,
			seconds(result.Cold), seconds(result.Warm), renewed, seconds(result.Outage), links(profile.Source))
	}
	return page.String()
}

// UsesTokens reports whether clients of a registry with the profile get tokens that can expire.
func UsesTokens(profile registryprofile.Profile) bool {
	return profile.Challenge == "bearer" || profile.RedirectChallenge == "bearer" || SellsTokens(profile)
}

// SellsTokens reports whether the password of the registry is a token, which its API sells.
func SellsTokens(profile registryprofile.Profile) bool {
	return profile.Challenge == "basic" && profile.RedirectSigned
}

func find(all []Result, name string) Result {
	if i := slices.IndexFunc(all, func(r Result) bool { return r.Registry == name }); i >= 0 {
		return all[i]
	}
	return Result{}
}

func seconds(s float64) string {
	if s == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.2f s", s)
}

var (
	thread  = regexp.MustCompile(`^github\.com/[^/]+/([^/]+)/(?:issues|pull|discussions)/(\d+)$`)
	address = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+/\S+$`)
)

// links turns the addresses in a list of sources into links.
func links(source string) string {
	var all []string
	for one := range strings.SplitSeq(source, ", ") {
		first, rest, _ := strings.Cut(one, " ")
		text := first
		if parts := thread.FindStringSubmatch(first); parts != nil {
			text = parts[1] + "#" + parts[2]
		}
		if address.MatchString(first) {
			one = strings.TrimSpace(fmt.Sprintf("[%s](https://%s) %s", text, first, rest))
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}
