package retry

import "errors"

// waiting is the error of an operation that waits for something in progress.
type waiting struct{ error }

func (w waiting) Unwrap() error { return w.error }

// Waiting marks an error that says what an operation waits for. Another look may find it done.
func Waiting(err error) error {
	if err == nil {
		return nil
	}
	return waiting{err}
}

// IsWaiting returns whether the error or one that it wraps is marked by Waiting.
func IsWaiting(err error) bool {
	return errors.As(err, new(waiting))
}
