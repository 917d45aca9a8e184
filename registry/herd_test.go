package registry

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"
)

var herd = flag.Int("herd", 100, "clients of the largest herd of TestHerd")

// TestHerd: nodes that pull the same new image at once share one download from the upstream.
func TestHerd(t *testing.T) {
	t.Parallel()
	const layers = 10
	for _, clients := range []int{20, *herd} {
		for _, tokens := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d clients, tokens %t", clients, tokens), func(t *testing.T) {
				Virtually(t, func(t *testing.T) {
					u := newTestUpstream(t, tokens)
					u.delay = 50 * time.Millisecond
					image := u.push(t, "v1", layers, 200<<10)
					alone := u.push(t, "alone", layers, 200<<10)
					cache := newTestServer(t, u, t.TempDir())
					start := time.Now()
					cache.pullAsANode(t, u, alone)
					one := time.Since(start)
					u.forget()
					start = time.Now()
					var nodes sync.WaitGroup
					for n := range clients {
						nodes.Go(func() {
							<-time.After(time.Duration(n) * 3 * time.Millisecond) // some clients ask while others are waiting
							cache.pullAsANode(t, u, image)
						})
					}
					nodes.Wait()
					t.Logf("one client %s, %d clients %s", one, clients, time.Since(start))
					if gets := u.asked("GET /v2/" + repositoryName); gets != layers+1 {
						t.Errorf("%d GETs of %d objects: %v", gets, layers+1, u.requests)
					}
					if heads, asked := u.asked("HEAD "), u.asked("token"); heads > 2 || asked > 2 {
						t.Errorf("%d HEADs and %d tokens, at most 2 wanted", heads, asked)
					}
				})
			})
		}
	}
}
