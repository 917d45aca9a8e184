package nodeexec

import (
	"io"
	"sync"
)

// gate lets only one writer write at a time, and no writer after close.
type gate struct {
	mutex  sync.Mutex
	closed bool
}

// close waits for the end of a current write, and refuses later writes.
func (g *gate) close() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.closed = true
}

// gatedWriter is a writer behind a gate. A write fails after the gate was closed.
type gatedWriter struct {
	gate *gate
	to   io.Writer
}

func (g gatedWriter) Write(p []byte) (int, error) {
	g.gate.mutex.Lock()
	defer g.gate.mutex.Unlock()
	if g.gate.closed {
		return 0, io.ErrClosedPipe
	}
	return g.to.Write(p)
}
