package measured

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// Registry has the seconds of pulls through a cache whose upstream has the profile of a registry.
type Registry struct {
	Registry   string `json:"registry"`
	Containerd string `json:"containerd"`
	// Cold is a pull of what the cache does not have, Warm one of what it has.
	Cold float64 `json:"cold,omitempty"`
	Warm float64 `json:"warm,omitempty"`
	// Renewed is a pull of new content after the upstream has dropped all tokens.
	Renewed float64 `json:"renewed,omitempty"`
	// Outage is a pull of what the cache has while the upstream is away.
	Outage float64 `json:"outage,omitempty"`
}

func (r Registry) addTo(all []Registry) []Registry {
	all = append(slices.DeleteFunc(all, func(other Registry) bool { return other.Registry == r.Registry }), r)
	slices.SortFunc(all, func(a, b Registry) int { return strings.Compare(a.Registry, b.Registry) })
	return all
}

//go:embed registries.txt
var registriesIntroduction string

// RegistriesPage renders docs/registries.md, with a row for each known profile.
func RegistriesPage(all []Registry) string {
	var page strings.Builder
	page.WriteString(registriesIntroduction)
	page.WriteString("| registry | what is special | cold | warm | expired token | outage |\n")
	page.WriteString("| --- | --- | ---: | ---: | ---: | ---: |\n")
	for _, name := range slices.Sorted(maps.Keys(registryprofile.Profiles)) {
		profile, result := registryprofile.Profiles[name], first(all, func(r Registry) bool { return r.Registry == name })
		renewed := seconds(result.Renewed, "")
		if !UsesTokens(profile) {
			renewed = "no token"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", name, profile.Description,
			seconds(result.Cold, ""), seconds(result.Warm, ""), renewed, seconds(result.Outage, ""))
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
