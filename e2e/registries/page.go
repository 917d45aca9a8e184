package registries

import (
	_ "embed"
	"fmt"
	"maps"
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
	page.WriteString("| registry | what is special | cold | warm | expired token | outage |\n")
	page.WriteString("| --- | --- | ---: | ---: | ---: | ---: |\n")
	for _, name := range slices.Sorted(maps.Keys(registryprofile.Profiles)) {
		profile, result := registryprofile.Profiles[name], find(all, name)
		renewed := seconds(result.Renewed)
		if !UsesTokens(profile) {
			renewed = "no token"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", name, profile.Description,
			seconds(result.Cold), seconds(result.Warm), renewed, seconds(result.Outage))
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
	return fmt.Sprintf("%.2f", s)
}
