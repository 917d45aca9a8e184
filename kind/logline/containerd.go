package logline

import "regexp"

// PullState is what containerd says of a pull.
type PullState string

// The states.
const (
	PullBegan    PullState = ""
	PullReturned PullState = " returns"
	PullFailed   PullState = " failed"
)

var pullMessage = regexp.MustCompile(`^PullImage "([^"]+)"( returns| failed)?`)

// PullMessage reads a message of containerd about a pull; image is as it was asked for.
func PullMessage(message string) (image string, state PullState, ok bool) {
	match := pullMessage.FindStringSubmatch(message)
	if match == nil {
		return "", "", false
	}
	return match[1], PullState(match[2]), true
}

// ContainerdStarts says that the message is the first one of a containerd that starts: it knows of no pull, so all that began before
// are over, and nobody says so.
func ContainerdStarts(message string) bool { return message == "starting containerd" }
