package upstream

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// output is the output of a container. Its streams end when they are closed or the container ends.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	printed []byte
	ended   bool
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	header := [8]byte{byte(stdcopy.Stdout)}
	binary.BigEndian.PutUint32(header[4:], uint32(len(line)+1))
	o.printed = append(append(append(o.printed, header[:]...), line...), '\n')
	o.changed.Broadcast()
}

// stream reads an output from the beginning.
type stream struct {
	*output
	at     int
	end    int // where it ends, or -1
	closed bool
}

func (s *stream) Read(to []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.end < 0 && s.at == len(s.printed) && !s.closed {
		s.changed.Wait()
	}
	if s.at == s.end || s.closed {
		return 0, io.EOF
	}
	printed := s.printed
	if s.end >= 0 {
		printed = printed[:s.end]
	}
	n := copy(to, printed[s.at:])
	s.at += n
	return n, nil
}

func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
	return nil
}

// logEngine serves the output of its only container.
type logEngine struct {
	client.APIClient
	output *output
	asked  int
}

func (e *logEngine) ContainerLogs(context.Context, string, client.ContainerLogsOptions) (client.ContainerLogsResult, error) {
	e.asked++
	e.output.mu.Lock()
	defer e.output.mu.Unlock()
	end := -1
	if e.output.ended {
		end = len(e.output.printed)
	}
	return &stream{output: e.output, end: end}, nil
}

// newLogged returns an upstream whose log is the output of the engine's container.
func newLogged(t *testing.T) (*instance, *logEngine) {
	t.Helper()
	docker := &logEngine{output: &output{}}
	docker.output.changed = sync.NewCond(&docker.output.mu)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		docker.output.add(fmt.Sprintf(`{"path":%q,"query":%q}`, r.URL.Path, r.URL.RawQuery))
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(address.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return &instance{docker: docker, host: "alpha.test", ports: map[uint16]uint16{httpPort: uint16(port)}, log: &follower{}}, docker
}

// TestLogIsFollowed: the log of a running container is read once, and read again from the beginning
// only after the container has ended.
func TestLogIsFollowed(t *testing.T) {
	for name, test := range map[string]struct {
		ended bool
		asked int
	}{"running": {false, 1}, "ended": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			upstream, docker := newLogged(t)
			docker.output.ended = test.ended
			for want := 1; want <= 3; want++ {
				docker.output.add(`{"path":"/v2/","kind":"base"}`)
				records, err := upstream.Log(t.Context())
				if err != nil || len(records) != want {
					t.Fatalf("%d records, error %v, want %d", len(records), err, want)
				}
			}
			if docker.asked != test.asked {
				t.Errorf("the engine was asked %d times, want %d", docker.asked, test.asked)
			}
			upstream.log.end()
		})
	}
}
