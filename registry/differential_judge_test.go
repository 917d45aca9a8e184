package registry

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// The rule, which this file applies to each action:
//
//	where containerd succeeds directly, it succeeds through the cache, in the same bytes and media
//	types; where it fails directly, the node sees the upstream's own answer; only the upstream's
//	answers become content; no client can harm another.
//
// What may differ:
//
//   - Stored content is served by digest without asking the upstream, in every repository.
//   - While the upstream is, or seems to be, away, a tag may be outdated, with a Warning.
//   - Where the upstream breaks an answer, the cache may do better.
//   - Credentials stay in the upstream's domain, even where nodes would send them elsewhere.
//   - Where only HEAD is refused, the cache asks with GET.
//   - An unusable media type may become one that containerd can use.

// run runs the schedule until its end or the first fault.
func (w *diffWorld) run() {
	var asked []diffAction
	for _, step := range w.Steps {
		if len(step) == 1 && step[0].event() {
			w.event(step[0])
		} else {
			w.step(step)
			asked = append(asked, step...)
		}
		if w.failed() {
			return
		}
	}
	w.settle(asked)
}

func (w *diffWorld) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.faults) > 0
}

// step performs the actions concurrently, after it has asked the oracle.
func (w *diffWorld) step(step diffStep) {
	var running sync.WaitGroup
	for _, a := range step {
		switch a.Do {
		case "resolve", "fetch", "seek", "chunks":
			direct := w.oracle(a)
			for range max(1, a.Times) {
				if a.Alone {
					running.Go(func() {
						w.judgeAlone(a, direct, w.alone(a, http.MethodGet), http.MethodGet)
						w.judgeAlone(a, direct, w.alone(a, http.MethodHead), http.MethodHead)
					})
				} else {
					running.Go(func() { w.judge(a, direct, w.pull(a, true)) })
				}
			}
		default:
			for range max(1, a.Times) {
				running.Go(func() { w.hostile(a) })
			}
		}
	}
	running.Wait()
}

// oracle performs the action without the cache. containerd does not request an empty blob.
func (w *diffWorld) oracle(a diffAction) diffOutcome {
	if a.Ref == "empty" && a.Do == "fetch" && a.Alone {
		a.Do = "resolve"
	}
	return w.pull(a, false)
}

// content performs the action without the cache, and reads everything that containerd then reads.
func (w *diffWorld) content(a diffAction) diffOutcome {
	o := w.oracle(a)
	for name, object := range diffObjects() {
		if o.kind == diffOK && o.desc.Digest == object.digest && len(object.content) > 0 {
			if read := w.pull(diffAction{Do: "fetch", Repo: a.Repo, Ref: name}, false); read.kind != diffOK {
				return read
			}
		}
	}
	return o
}

// judge compares containerd with and without the cache.
func (w *diffWorld) judge(a diffAction, direct, through diffOutcome) {
	byDigest := a.Do != "resolve" || !w.library.tag(a.Ref)
	excused := w.letDown(a.Repo) || w.slow()
	say := func(what string) {
		w.fault("%s: %s %s/%s: directly %s; through the cache %s", what, a.Do, a.Repo, a.Ref, direct, through)
	}
	switch {
	case direct.kind == diffOK && through.kind != diffOK && w.Profile.Ranges != "" && w.slow() && a.Do != "chunks": // nobody can resume
	case direct.kind == diffOK && a.Do == "chunks" && w.Profile.Damaged: // without the cache, no chunk contains the wrong byte
	case direct.kind == diffOK && through.kind != diffOK:
		say("fails")
	case direct.kind == diffOK && a.Do == "resolve":
		old := !byDigest && excused && w.library.was(a.Repo, a.Ref, through.desc.Digest)
		if !old && (direct.desc.Digest != through.desc.Digest || direct.desc.Size != through.desc.Size) {
			say("differs")
		} else if !old && direct.desc.MediaType != through.desc.MediaType && w.Profile.ContentType == "" {
			say("media type")
		}
	case direct.kind == diffOK: // check has compared the content
	case through.kind == diffOK:
		if !byDigest && !w.library.was(a.Repo, a.Ref, through.desc.Digest) {
			say("invented")
		} else if !byDigest && direct.kind != diffBroken && !excused && !w.headOnly() {
			say("refused, but served")
		}
	case direct.kind == diffBroken && through.kind != diffBroken && !excused && !w.headOnly() && !w.loginFails():
		say("denied, though broken")
	case direct.kind != diffBroken && direct.kind != through.kind && !excused && !w.headOnly() && !w.blameless(direct):
		say("blames the cache")
	}
}

// judgeAlone judges an answer of the cache itself.
func (w *diffWorld) judgeAlone(a diffAction, direct, got diffOutcome, method string) {
	say := func(what string) {
		w.fault("%s: %s %s, directly %s; the cache alone %s %v", what, method, w.path(a), direct, got, got.header)
	}
	w.secret(got)
	tag := a.Do == "resolve" && w.library.tag(a.Ref)
	stale := got.header.Get("Warning") != ""
	excused := w.letDown(a.Repo) || w.slow()
	switch {
	case got.status == 0: // cut
	case got.status < 300:
		if what := w.wrong(a, got, method); what != "" {
			say("wrong: " + what)
		} else if tag && direct.kind == diffOK && (stale || w.current(a) != got.header.Get("Docker-Content-Digest")) && !excused {
			say("stale")
		} else if tag && direct.kind != diffOK && direct.kind != diffBroken && !excused && !w.headOnly() {
			say("refused, but served alone")
		}
	case got.status == http.StatusRequestedRangeNotSatisfiable:
	case got.status < 500 && direct.kind == diffOK && !w.headOnly() && !w.loginAbroad():
		say("denies what exists")
	case a.Ref == "empty" && a.Do == "fetch": // the oracle has requested another path
	case got.status < 500 && direct.kind == diffBroken && !excused && !w.headOnly() && !w.loginFails():
		say("denies, though broken")
	}
}

func (w *diffWorld) current(a diffAction) string {
	o, _ := w.library.find(a.Repo, a.Ref)
	return o.digest.String()
}

// wrong describes what is wrong with a successful answer, or returns "".
func (w *diffWorld) wrong(a diffAction, got diffOutcome, method string) string {
	want := diffObjects()[a.Ref]
	if a.Do == "resolve" && w.library.tag(a.Ref) {
		want = diffObject{}
		for _, o := range diffObjects() {
			if o.digest.String() == got.header.Get("Docker-Content-Digest") && w.library.was(a.Repo, a.Ref, o.digest) {
				want = o
			}
		}
		if want.content == nil && w.Profile.Damaged && w.Profile.Digest == "none" {
			return "" // nobody can detect the damage
		}
		if want.content == nil {
			return "not what the tag ever was"
		}
	}
	if method == http.MethodHead {
		saysSo := func(a registryprofile.Answer) bool {
			return a.Document != "" && (a.Status == 0 || a.Status == http.StatusOK)
		}
		if w.Profile.HeadZeroLength || slices.ContainsFunc(w.Profile.Answers, saysSo) {
			return "" // the upstream sends it
		}
		if length := got.header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(want.content)-a.From) && length != strconv.Itoa(len(want.content)) {
			return "length " + length
		}
		return ""
	}
	content := want.content
	if got.status == http.StatusPartialContent {
		content = content[a.From:]
	}
	if got.err == nil && !bytes.Equal(got.body, content) && !w.passesDamaged(got) {
		return "bytes"
	}
	if d := got.header.Get("Docker-Content-Digest"); d != "" && d != want.digest.String() {
		return "digest header"
	}
	if want.kind == "manifests" {
		return w.mediaType(a, want, got)
	}
	return ""
}

// mediaType checks that the media type is usable and does not change.
func (w *diffWorld) mediaType(a diffAction, want diffObject, got diffOutcome) string {
	media, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	if kind := w.Profile.ContentType; kind != "" && !strings.HasPrefix(kind, "+") && !diffUsable(kind) {
		return "" // the upstream's type, or a better one
	}
	if !diffUsable(media) {
		return "media type " + media
	}
	if w.Profile.ContentType != "" && w.Profile.BodyTimes > 0 {
		return "" // the upstream changes it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := a.Repo + want.digest.String()
	if before := w.types[key]; before != "" && before != media {
		return "media type, before it was " + before
	}
	w.types[key] = media
	return ""
}

// secret reports secrets in an answer to a client.
func (w *diffWorld) secret(got diffOutcome) {
	text := string(got.body) + fmt.Sprint(got.header)
	for _, secret := range []string{diffPassword, "refresh-"} {
		if strings.Contains(text, secret) {
			w.fault("secret: a client reads %q: %.200s", secret, text)
		}
	}
}

// hostile performs requests that only clients other than containerd send.
func (w *diffWorld) hostile(a diffAction) {
	object := diffObjects()[a.Ref]
	path := a.Repo + "/" + object.kind + "/" + object.digest.String()
	size := len(object.content)
	switch a.Do {
	case "span":
		last := min(a.From+999, size-1)
		got := w.ask(http.MethodGet, path, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", a.From, last)}}, -1)
		w.part(a, got, a.From, last)
	case "suffix":
		got := w.ask(http.MethodGet, path, http.Header{"Range": {fmt.Sprintf("bytes=-%d", a.From)}}, -1)
		w.part(a, got, max(0, size-a.From), size-1)
	case "cross":
		other := map[string]string{"blobs": "manifests", "manifests": "blobs"}[object.kind]
		got := w.ask(http.MethodGet, a.Repo+"/"+other+"/"+object.digest.String(), nil, -1)
		if got.status != 0 && got.status < 300 && got.err == nil { // a cut answer does not count
			w.fault("cross: %s at /%s/: %s", a.Ref, other, got)
		}
	case "foreign":
		got := w.ask(http.MethodGet, path, nil, -1)
		w.part(a, got, 0, size-1)
	case "leave":
		w.part(a, w.ask(http.MethodGet, path, nil, a.From), 0, size-1)
	case "flood":
		w.flood(a, object)
	case "upload":
		if got := w.ask(http.MethodGet, a.Repo+"/blobs/uploads/x", nil, -1); got.status == 0 || got.status < 400 || got.status >= 500 {
			w.fault("upload: %s", got)
		}
	}
}

// part checks the bytes of a complete answer.
func (w *diffWorld) part(a diffAction, got diffOutcome, from, to int) {
	w.secret(got)
	content := diffObjects()[a.Ref].content
	if got.status == http.StatusPartialContent {
		content = content[min(from, len(content)):max(0, to+1)]
	} else if got.status != http.StatusOK {
		return
	}
	if got.err == nil && !bytes.Equal(got.body, content) && !w.passesDamaged(got) {
		w.fault("wrong: %s of %s from %d: %d other bytes in a complete %d", a.Do, a.Ref, a.From, len(got.body), got.status)
	}
}

// flood requests a blob in nonexistent repositories, and counts new files on the volume.
func (w *diffWorld) flood(a diffAction, object diffObject) {
	for i := range a.From {
		w.ask(http.MethodHead, fmt.Sprintf("x%04d/a/b/%s/%s", i, object.kind, object.digest), nil, -1)
	}
	left := 0
	_ = filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "x0") {
			left++
		}
		return nil
	})
	if left > 0 {
		w.fault("flood: %d of %d invented repositories are on the volume", left, a.From)
	}
}

// settle checks at the end that the cache alone can serve all requests, after a while and a few
// retries.
func (w *diffWorld) settle(asked []diffAction) {
	w.event(diffAction{Do: "back"})
	if w.beyond() {
		return
	}
	diffSleep(20 * time.Second)
	for _, a := range asked {
		if a.Do != "resolve" && a.Do != "fetch" {
			continue
		}
		var got, direct diffOutcome
		for range 10 {
			a.Alone = true
			direct, got = w.content(a), w.alone(a, http.MethodGet)
			if direct.kind != diffOK || got.status == http.StatusOK && got.header.Get("Warning") == "" {
				break
			}
			diffSleep(45 * time.Second)
		}
		if direct.kind != diffOK {
			continue
		}
		if got.status != http.StatusOK || got.header.Get("Warning") != "" {
			w.fault("cannot: %s, directly %s; the cache alone %s %v", w.path(a), direct, got, got.header)
		}
		w.judgeAlone(a, direct, got, http.MethodGet)
		if w.failed() {
			return
		}
	}
}
