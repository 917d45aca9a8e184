package registry

import (
	"net/http"
	"slices"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// slow reports whether the profile lets the cache lose patience.
func (w *diffWorld) slow() bool {
	p := w.Profile
	return p.Silence > 0 || p.Rate > 0 || p.CutAfter > 0 || p.TokenHangs
}

// headOnly reports whether something is said to HEAD only.
func (w *diffWorld) headOnly() bool {
	for _, a := range w.Profile.Answers {
		if a.Method != "" || a.Status < 400 {
			return true
		}
	}
	return false
}

// loginFails reports whether the failure may be one of the token server: then the upstream's own
// answer is its refusal.
func (w *diffWorld) loginFails() bool { return w.Profile.Challenge != "" }

// loginAbroad reports whether nodes give credentials to another domain, which a cache does not.
func (w *diffWorld) loginAbroad() bool {
	p := w.Profile
	return (p.Username != "" && !p.Anonymous || p.TokenGet != 0) && w.realmAbroad()
}

// blameless reports whether the cache cannot know how the upstream refuses a node: it has kept the
// credentials from a token server or a target of another domain, the repository is paused because
// the token server fails, or another repository has the blob, whose download fails.
func (w *diffWorld) blameless(direct diffOutcome) bool {
	withheld := w.loginAbroad() || w.Login && direct.kind == diffDenied && w.realmAbroad()
	noToken := w.Profile.TokenField == "empty" || w.Profile.TokenStatus != 0
	return withheld || noToken || w.Profile.RedirectChallenge == "basic" || w.Profile.Damaged && direct.kind == diffMissing
}

// passesDamaged reports whether an answer is a part that passes through, because the whole is late:
// only a client that gets all parts can check it.
func (w *diffWorld) passesDamaged(got diffOutcome) bool {
	return got.status == http.StatusPartialContent && w.Profile.Damaged && w.slow()
}

// realmAbroad reports whether a token server is in another domain than the upstream.
func (w *diffWorld) realmAbroad() bool {
	return slices.ContainsFunc(w.Profile.Realms, func(realm string) bool {
		return realm != registryprofile.Same && realm != registryprofile.Port && (realm != registryprofile.Sibling || w.IP)
	})
}

// beyond reports whether the cache need not manage alone what nodes can.
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
