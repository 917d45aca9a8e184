package accesslog

import "context"

// exchange is a request that is being answered.
type exchange struct {
	log *Log
	// done is closed when nobody has to wait for the answer any longer; nil while it is held. The log's lock guards it.
	done   chan struct{}
	faults []string
}

type exchangeKey struct{}

// NoteFault says that the answer to the request with this context was changed on purpose, so that its Record can tell. It is
// to be called by the handler, before it returns. Without a Log it does nothing.
func NoteFault(ctx context.Context, id string) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.faults = append(e.faults, id)
	}
}

// Hold says that the request with this context is kept waiting on purpose, until the returned function is called: who reads
// the log does not wait for its answer, and finds its record once it has ended. Without a Log it does nothing.
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
