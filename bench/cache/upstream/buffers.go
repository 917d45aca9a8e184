package upstream

import "sync"

// buffers is the pool of a line's copy buffers. Large ones keep the line cheap, because it shares
// the CPUs with what is measured.
type buffers struct{}

var pool = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return pool.Get().(*[copyBuffer]byte)[:] } //nolint:errcheck // see pool

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { pool.Put((*[copyBuffer]byte)(b)) }
