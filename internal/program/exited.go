package program

import "fmt"

// Exit is for a command that ran another program: it ends with that program's exit code, and nothing is printed, since the program
// has said what there is to say. It is nil for 0.
func Exit(code int) error {
	if code == ExitFine {
		return nil
	}
	return exited(code)
}

type exited int

func (e exited) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
func (e exited) exitCode() int { return int(e) }
