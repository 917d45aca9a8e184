package upstream

import (
	"bytes"
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

// endingEngine is one whose container's output it keeps. It passes on what there is when it is asked, and then ends the stream, as
// at the end of a container.
type endingEngine struct {
	client.APIClient
	mu     sync.Mutex
	stdout bytes.Buffer
	asked  int
}

func (e *endingEngine) print(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	header := [8]byte{byte(stdcopy.Stdout)}
	binary.BigEndian.PutUint32(header[4:], uint32(len(line)+1))
	e.stdout.Write(header[:])
	e.stdout.WriteString(line + "\n")
}

func (e *endingEngine) ContainerLogs(context.Context, string, client.ContainerLogsOptions) (client.ContainerLogsResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return io.NopCloser(bytes.NewReader(bytes.Clone(e.stdout.Bytes()))), nil
}

// TestLogBeginsAnew: when the output was followed to its end, the next look has all of it again, and what came since.
func TestLogBeginsAnew(t *testing.T) {
	docker := &endingEngine{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		docker.print(fmt.Sprintf(`{"path":%q,"query":%q}`, r.URL.Path, r.URL.RawQuery))
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(address.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	upstream := &instance{docker: docker, host: "alpha.test", ports: map[uint16]uint16{httpPort: uint16(port)}, log: &follower{}}
	for want := 1; want <= 3; want++ {
		docker.print(`{"path":"/v2/","kind":"base"}`)
		records, err := upstream.Log(t.Context())
		if err != nil || len(records) != want {
			t.Fatalf("%d records, error %v, want %d", len(records), err, want)
		}
	}
	if docker.asked != 3 {
		t.Errorf("the engine was asked %d times", docker.asked)
	}
}
