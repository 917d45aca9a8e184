package nodeexec

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Serve runs the commands that a client requests through the reader in. At the end of this input,
// Serve kills the commands that still run. All commands get this process's environment and folder.
//
// Serve trusts everyone who can write this input, since they can also start this process or any
// other. There is therefore no authentication. Serve creates a host key only because SSH needs one.
func Serve(in io.ReadCloser, out io.WriteCloser) error {
	// Handle SIGPIPE: if out is closed, this process must still kill its commands before it ends.
	// After signal.Ignore, the commands would ignore SIGPIPE, too.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	config, err := serverConfig()
	if err != nil {
		return err
	}
	connection, sessions, requests, err := ssh.NewServerConn(stream{in, out}, config)
	if err != nil {
		return fmt.Errorf("connect to the client: %w", err)
	}
	go ssh.DiscardRequests(requests)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for requested := range sessions { // the end of the connection closes this channel
		running.Go(func() { serveSession(ctx, requested) })
	}
	cancel()
	running.Wait()
	if err := connection.Wait(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("connection to the client: %w", err)
	}
	return nil
}

func serverConfig() (*ssh.ServerConfig, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("generate a host key: %w", err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		return nil, fmt.Errorf("use the host key: %w", err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	return config, nil
}

// serveSession runs the command of one session. When the client closes the session or ctx ends, a
// command that still runs is killed.
func serveSession(ctx context.Context, requested ssh.NewChannel) {
	if requested.ChannelType() != "session" {
		_ = requested.Reject(ssh.UnknownChannelType, "only sessions")
		return
	}
	channel, requests, err := requested.Accept()
	if err != nil {
		return // the connection has ended
	}
	defer func() { _ = channel.Close() }() // an error means that the client has closed it
	argv := awaitCommand(requests)
	if argv == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		ssh.DiscardRequests(requests) // until the session is closed
	}()
	code := run(ctx, argv, channel)
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(exitStatus{code}))
}

// exitStatus is the payload of the request "exit-status" (RFC 4254, 6.10).
type exitStatus struct{ Code uint32 }

// execRequest is the payload of the request "exec" (RFC 4254, 6.5). For Command, see encode.
type execRequest struct{ Command string }

// awaitCommand returns the arguments of the first "exec" request and refuses all other requests. If
// the session is closed before that request, awaitCommand returns nil.
func awaitCommand(requests <-chan *ssh.Request) []string {
	for request := range requests {
		var wanted execRequest
		valid := request.Type == "exec" && ssh.Unmarshal(request.Payload, &wanted) == nil
		if request.WantReply {
			_ = request.Reply(valid, nil) // an error means that the session is closed
		}
		if valid {
			return decode(wanted.Command)
		}
	}
	return nil
}
