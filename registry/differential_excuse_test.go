package registry

import (
	"net/http"
	"slices"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// slow reports whether the profile may be too slow for the patience of the cache.
func (w *diffWorld) slow() bool {
	p := w.Profile
	return p.Silence > 0 || p.Rate > 0 || p.CutAfter > 0 || p.TokenHangs
}

// headOnly reports whether the upstream answers HEAD differently.
func (w *diffWorld) headOnly() bool {
	for _, a := range w.Profile.Answers {
		if a.Method != "" || a.Status < 400 {
			return true
		}
	}
	return false
}

// loginFails reports whether the token server may have failed, instead of the upstream.
func (w *diffWorld) loginFails() bool { return w.Profile.Challenge != "" }

// loginAbroad reports whether nodes, but not the cache, send credentials to another domain.
func (w *diffWorld) loginAbroad() bool {
	p := w.Profile
	return (p.Username != "" && !p.Anonymous || p.TokenGet != 0) && w.realmAbroad()
}

// blameless reports whether the cache cannot know how the upstream refuses a node. It may have
// withheld the credentials from another domain, the repository may be paused because the token
// server failed, or the download of the blob from another repository may have failed.
func (w *diffWorld) blameless(direct diffOutcome) bool {
	withheld := w.loginAbroad() || w.Login && direct.kind == diffDenied && w.realmAbroad()
	noToken := w.Profile.TokenField == "empty" || w.Profile.TokenStatus != 0
	return withheld || noToken || w.Profile.RedirectChallenge == "basic" || w.Profile.Damaged && direct.kind == diffMissing
}

// passesDamaged reports whether an answer is a part that passes through because the whole blob is
// late. Only a client with all parts can detect the damage.
func (w *diffWorld) passesDamaged(got diffOutcome) bool {
	return got.status == http.StatusPartialContent && w.Profile.Damaged && w.slow()
}

// realmAbroad reports whether a token server is in another domain than the upstream.
func (w *diffWorld) realmAbroad() bool {
	return slices.ContainsFunc(w.Profile.Realms, func(realm string) bool {
		return realm != registryprofile.Same && realm != registryprofile.Port && (realm != registryprofile.Sibling || w.IP)
	})
}

// beyond reports whether nodes may succeed where the cache alone cannot.
func (w *diffWorld) beyond() bool {
	p := w.Profile
	if w.loginAbroad() {
		return true
	}
	if p.RedirectChallenge == "basic" || p.Digest == "wrong" {
		return true
	}
	for _, a := range p.Answers {
		if a.Times == 0 && (a.Status == 0 || a.Status == 408 || a.Status == 429 || a.Status >= 500) {
			return true
		}
	}
	return p.Silence > 1000 || p.Rate > 0 || p.CutAfter > 0 && p.CutAfter < 20000
}
