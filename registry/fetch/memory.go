package fetch

import (
	"bytes"
	"context"
	"errors"
	"time"
)

const (
	// memorySize is how far the slowest client may be behind if the volume does not take a blob.
	memorySize = 4 << 20
	// memoryPatience is how long the download waits for the slowest client, which is cut then.
	memoryPatience = 10 * time.Second
)

var errSlow = errors.New("the client reads too slowly a blob for which the volume has no room")

// memory holds the last bytes of a blob that the volume does not take. The flight's lock guards it.
type memory struct {
	start      int64 // the offset of the first byte that was ever here
	begin, end int64 // the offsets of what chunks have
	chunks     [][]byte
}

// at returns the rest of the chunk at an offset, and the offset of its end, at most shown.
func (m *memory) at(offset, shown int64) (chunk []byte, end int64, err error) {
	if offset >= m.begin {
		end = m.begin
		for _, chunk := range m.chunks {
			if end += int64(len(chunk)); offset < end {
				return chunk[int64(len(chunk))-(end-offset):], min(end, shown), nil
			}
		}
	}
	return nil, 0, errSlow
}

// remember adds bytes to the memory. It waits until all clients have read what must go for them, at
// most memoryPatience: slower clients are cut.
func (f *Flight) remember(ctx context.Context, p []byte) error {
	defer context.AfterFunc(ctx, f.wake)()
	late := time.Now().Add(memoryPatience)
	defer time.AfterFunc(memoryPatience, f.wake).Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.memory
	for m.end+int64(len(p))-f.slowest() > memorySize && time.Now().Before(late) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		f.changed.Wait()
	}
	m.chunks, m.end = append(m.chunks, bytes.Clone(p)), m.end+int64(len(p))
	for m.end-m.begin > memorySize {
		m.begin += int64(len(m.chunks[0]))
		m.chunks = m.chunks[1:]
	}
	return nil
}

// slowest returns the offset of the slowest client that can still be served. While nothing has been
// dropped, clients that have joined but do not read yet count as being at the start.
func (f *Flight) slowest() int64 {
	m := f.memory
	complete := m.begin == m.start
	if complete && f.clients > len(f.readers) {
		return m.begin
	}
	slowest := m.end
	for r := range f.readers {
		if complete || r.offset >= m.begin {
			slowest = min(slowest, max(r.offset, m.begin))
		}
	}
	return slowest
}
