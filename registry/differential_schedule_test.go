package registry

import (
	"math/rand/v2"
	"slices"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// diffSchedule is one run of the differential test: an upstream and a sequence of steps.
type diffSchedule struct {
	Profile registryprofile.Profile
	// IP makes the upstream use an address instead of a name.
	IP bool
	// Login gives the cache and the nodes the upstream's user name and password.
	Login bool
	Steps []diffStep
}

// diffStep is a list of concurrent actions, or one event.
type diffStep []diffAction

// diffAction is a client's action, or an event.
type diffAction struct {
	// Do is one of
	//   resolve, fetch, seek (fetch from From on), chunks (fetch in parallel): of containerd, or with
	//     Alone of a client that knows only the cache;
	//   span (a thousand bytes from From on), suffix (the last From bytes), cross (a blob as manifest
	//     or the other way round), foreign (in a repository that does not contain it), flood (HEAD in
	//     From invented repositories), leave (after From bytes), upload: of a client that knows only
	//     the cache;
	//   away (Ref says how), back, sleep (From seconds), move (the tag Ref to the object To), untag,
	//     restart, clock (restart, and files From seconds younger): events.
	Do    string
	Repo  string
	Ref   string // a tag, or the name of an object
	Alone bool
	From  int
	To    string
	Times int // the number of concurrent clients, 1 if 0
}

func (a diffAction) event() bool {
	return slices.Contains([]string{"away", "back", "sleep", "move", "untag", "restart", "clock"}, a.Do)
}

const (
	diffApp  = "team/app"
	diffBase = "team/base"
	diffTool = "other/tool"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// diffKnown returns the profile of a known registry, with a token lifetime of at most ten minutes:
// every second of virtual time also runs the cache's background work.
func diffKnown(name string) registryprofile.Profile {
	p := registryprofile.Profiles[name]
	p.Description, p.Source = "", ""
	p.TokenLife, p.TokenExpiresIn = min(p.TokenLife, 600), min(p.TokenExpiresIn, 600)
	return p
}

// diffRandom returns the schedule of a seed.
func diffRandom(seed uint64) diffSchedule {
	r := rand.New(rand.NewPCG(seed, 31))
	s := diffSchedule{Login: r.IntN(3) == 0, IP: r.IntN(10) == 0}
	if r.IntN(5) < 2 {
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range registryprofile.Profiles {
				if !yield(name) {
					return
				}
			}
		})
		s.Profile = diffKnown(pick(r, names...))
	}
	for range r.IntN(4) {
		pick(r, diffMutations...)(r, &s.Profile)
	}
	if r.IntN(3) == 0 {
		s.Profile.Username, s.Profile.Password = diffUser, diffPassword
	}
	if s.Profile.RedirectChallenge != "" || slices.Contains(s.Profile.RedirectTo, registryprofile.Same) {
		s.Profile.RedirectSigned = false // no registry combines a signature with a challenge or credentials
	}
	for range 2 + r.IntN(5) {
		s.Steps = append(s.Steps, diffRandomStep(r))
	}
	return s
}

func diffRandomStep(r *rand.Rand) diffStep {
	if r.IntN(3) == 0 {
		return diffStep{diffRandomEvent(r)}
	}
	step := diffStep{}
	for range 1 + r.IntN(3) {
		step = append(step, diffRandomAction(r))
	}
	return step
}

func diffRandomEvent(r *rand.Rand) diffAction {
	switch r.IntN(8) {
	case 0:
		return diffAction{Do: "away", Ref: pick(r, "refused", "silent", "503", "html")}
	case 1:
		return diffAction{Do: "back"}
	case 2, 3:
		return diffAction{Do: "sleep", From: pick(r, 3, 70, 400, 700)}
	case 4:
		return diffAction{Do: "move", Repo: diffApp, Ref: "v1", To: pick(r, "image", "second", "plain")}
	case 5:
		return diffAction{Do: "untag", Repo: diffApp, Ref: "v1"}
	case 6:
		return diffAction{Do: "restart"}
	default:
		return diffAction{Do: "clock", From: pick(r, 3600, -3600, 40000000)}
	}
}

func diffRandomAction(r *rand.Rand) diffAction {
	tags := []string{"v1", "v1", "v1", "latest", "plain", "docker", "art"}
	blobs := []string{"config", "layer", "layer", "small", "empty", "sha512"}
	manifests := []string{"image", "index", "plain", "docker", "artifact"}
	a := diffAction{Repo: diffApp, Alone: r.IntN(2) == 0}
	if r.IntN(4) == 0 {
		a.Times = 2 + r.IntN(3)
	}
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		a.Do, a.Ref = "resolve", pick(r, tags...)
	case 4:
		a.Do, a.Ref = "resolve", pick(r, append(manifests, "typo")...)
	case 5:
		a.Do, a.Ref, a.Repo = "resolve", "v1", pick(r, diffBase, diffTool, "no/such")
	case 6, 7:
		a.Do, a.Ref = "fetch", pick(r, manifests...)
	case 8, 9, 10:
		a.Do, a.Ref, a.Repo = "fetch", pick(r, blobs...), pick(r, diffApp, diffApp, diffBase, diffTool)
	case 11:
		a.Do, a.Ref, a.From = "seek", pick(r, "layer", "sha512"), pick(r, 1, 500, 30000, 65000)
	case 12:
		a.Do, a.Ref, a.Alone = "chunks", "layer", false
	default:
		a.Alone = true
		a.Do = pick(r, "span", "suffix", "cross", "foreign", "flood", "leave")
		if r.IntN(20) == 0 {
			a.Do = "upload"
		}
		a.Ref, a.From = pick(r, blobs...), pick(r, 0, 10, 20000)
		switch a.Do {
		case "cross":
			a.Ref = pick(r, append(manifests, blobs...)...)
		case "flood":
			a.From = 40
		case "foreign":
			a.Repo = pick(r, "bogus/repository", diffTool)
		}
	}
	return a
}

// diffMutations each change one behavior of a profile.
var diffMutations = []func(r *rand.Rand, p *registryprofile.Profile){
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge = pick(r, "bearer", "bearer", "basic", "both")
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		site := pick(r, registryprofile.Foreign, registryprofile.Sibling, registryprofile.Port, registryprofile.Private)
		p.Challenge, p.Realms = "bearer", []string{site}
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge, p.Realms = "bearer", []string{registryprofile.Same, registryprofile.Foreign}
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge, p.TokenLife = "bearer", pick(r, 60, 300)
		p.TokenExpiresIn, p.TokenIssuedAt = pick(r, 0, p.TokenLife, 3600), r.IntN(2) == 0
		p.Refused, p.RefusedChallenge = pick(r, 0, 0, 400, 403), pick(r, "", "", "none", "basic")
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge, p.TokenIssuedAt, p.TokenIssuedAgo, p.TokenExpiresIn = "bearer", true, pick(r, 0, 250, -600), 300
		p.TokenLife = 300
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge, p.TokenField = "bearer", pick(r, "token", "access_token", "refresh_token", "html", "empty")
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge, p.TokenPost, p.RefreshToken = "bearer", pick(r, 0, 400, 401, 404, 405), pick(r, "", "refresh-x")
	},
	func(r *rand.Rand, p *registryprofile.Profile) { p.Challenge, p.TokenGet = "bearer", 405 },
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Challenge, p.TokenStatus = "bearer", pick(r, 429, 429, 400, 403, 500)
		p.TokenTimes, p.TokenRetryAfter = 0, ""
		if p.TokenStatus == 429 || p.TokenStatus == 500 { // the refusal is final; otherwise nodes would see another one
			p.TokenTimes, p.TokenRetryAfter = pick(r, 0, 1), pick(r, "", "30")
		}
	},
	func(r *rand.Rand, p *registryprofile.Profile) { p.Challenge, p.TokenHangs = "bearer", r.IntN(2) == 0 },
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Scope, p.RootScope = pick(r, "", "-", "*"), pick(r, "", "repository:user/image:pull")
	},
	func(r *rand.Rand, p *registryprofile.Profile) { p.Missing = pick(r, 401, 403) },
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Answers = append(p.Answers, registryprofile.Answer{
			Method: pick(r, "", "", "HEAD"), Path: pick(r, "/manifests/v1$", "/manifests/", "/blobs/", diffApp, diffBase),
			Status: pick(r, 401, 403, 404, 405, 410, 412), Document: pick(r, "DENIED", "html", "empty"), Early: r.IntN(4) == 0,
		})
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Answers = append(p.Answers, registryprofile.Answer{
			Path:   pick(r, "/manifests/v1$", "/manifests/", "/blobs/", diffBase, diffTool),
			Status: pick(r, 408, 429, 429, 500, 503), RetryAfter: pick(r, "", "2", "880.092µs", "60"), Times: pick(r, 0, 1, 2),
			Document: pick(r, "TOOMANYREQUESTS", "html"),
		})
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Answers = append(p.Answers, registryprofile.Answer{
			Method: pick(r, "", "GET"), Path: pick(r, "/manifests/v1$", "/manifests/", "/blobs/"), Document: pick(r, "UNKNOWN", "html"),
		})
	},
	func(r *rand.Rand, p *registryprofile.Profile) { p.HeadWithoutDigest = true },
	func(r *rand.Rand, p *registryprofile.Profile) { p.HeadWithoutLength = true },
	func(r *rand.Rand, p *registryprofile.Profile) { p.HeadZeroLength = true },
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Redirect, p.RedirectOf = pick(r, 302, 307, 301, 308), pick(r, "", registryprofile.Blobs)
		p.RedirectTo = []string{pick(r, registryprofile.Foreign, registryprofile.Same, registryprofile.Sibling, registryprofile.Private)}
		if r.IntN(3) == 0 {
			p.RedirectTo = append(p.RedirectTo, registryprofile.Foreign)
		}
		p.RedirectRelative, p.RedirectSigned = r.IntN(2) == 0, r.IntN(2) == 0
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.Redirect, p.RedirectTo, p.RedirectChallenge = 307, []string{registryprofile.Foreign}, pick(r, "bearer", "basic")
	},
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.BodyOf = pick(r, "", registryprofile.Blobs, registryprofile.Manifests)
		p.BodyTimes = pick(r, 0, 1)
	},
	func(r *rand.Rand, p *registryprofile.Profile) { p.Silence = pick(r, 100, 2000, 20000) },
	func(r *rand.Rand, p *registryprofile.Profile) { p.Rate = pick(r, 100, 5000, 20000) },
	func(r *rand.Rand, p *registryprofile.Profile) { p.CutAfter = pick(r, 1000, 30000) },
	func(r *rand.Rand, p *registryprofile.Profile) { p.Damaged = true },
	func(r *rand.Rand, p *registryprofile.Profile) { p.Chunked = true },
	func(r *rand.Rand, p *registryprofile.Profile) { p.ZeroLength = true },
	func(r *rand.Rand, p *registryprofile.Profile) { p.Gzip = true },
	func(r *rand.Rand, p *registryprofile.Profile) { p.Digest = pick(r, "none", "wrong") },
	func(r *rand.Rand, p *registryprofile.Profile) {
		p.ContentType = pick(r, "-", "+; charset=utf-8", "application/octet-stream", "application/json", "text/plain",
			"application/vnd.docker.distribution.manifest.v2+json", "application/vnd.oci.image.index.v1+json")
	},
	func(r *rand.Rand, p *registryprofile.Profile) { p.Ranges = pick(r, "ignored", "416", "other", "lies") },
}
