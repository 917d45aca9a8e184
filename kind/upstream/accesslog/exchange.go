package accesslog

import "context"

// exchange is a running request.
type exchange struct {
	log *Log
	// done is closed when nobody has to wait for the response any longer. It is nil while the request
	// is held. The lock of log guards it.
	done   chan struct{}
	faults []string
}

type exchangeKey struct{}

// NoteFault records that a fault has changed the response to the request in ctx. The handler must
// call it before it returns. Without a Log it does nothing.
func NoteFault(ctx context.Context, id string) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.faults = append(e.faults, id)
	}
}

// Hold declares that a fault delays the request in ctx until release is called. Readers of the log
// do not wait for a held request. Without a Log, Hold does nothing.
func Hold(ctx context.Context) (release func()) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return func() {}
	}
	e.end()
	return e.begin
}

func (e *exchange) begin() {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.done = make(chan struct{})
	e.log.running[e.done] = struct{}{}
}

func (e *exchange) end() {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if e.done == nil {
		return
	}
	delete(e.log.running, e.done)
	close(e.done)
	e.done = nil
}
