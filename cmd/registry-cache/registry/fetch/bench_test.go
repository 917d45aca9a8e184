package fetch

import (
	"net/http/httptest"
	"testing"
)

// What it costs one client that nobody joins.
func BenchmarkColdBlob(b *testing.B) {
	for name, cacheOf := range map[string]func(testing.TB, *upstream) *httptest.Server{
		"plain":     plainCache,
		"coalesced": func(t testing.TB, u *upstream) *httptest.Server { cache, _ := newCache(t, u); return cache },
	} {
		b.Run(name, func(b *testing.B) {
			const size = 64 << 20
			u := newUpstream(b)
			cache := cacheOf(b, u)
			b.SetBytes(size)
			for b.Loop() {
				b.StopTimer()
				blob := u.add(b, size)
				b.StartTimer()
				if got := get(b.Context(), cache, blobPath("library/app", blob)); len(got.body) != size {
					b.Fatalf("%d bytes, error %v", len(got.body), got.err)
				}
			}
		})
	}
}
