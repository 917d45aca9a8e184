package v1alpha3

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkHostPort accepts <host>[:<port>]. The host is a lower-case host name (RFC 1123), an IPv4
// address or an IPv6 address in brackets. Only canonical spellings are valid, because hosts are
// compared as bytes.
func checkHostPort(hostPort string) error {
	host, port, err := splitHostPort(hostPort)
	if err != nil {
		return err
	}
	if port != "" {
		number, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || number == 0 || strconv.FormatUint(number, 10) != port[1:] {
			return fmt.Errorf("the port %q is not a number between 1 and 65535", port[1:])
		}
	}
	if address, isIPv6 := strings.CutPrefix(host, "["); isIPv6 {
		return checkAddress(strings.TrimSuffix(address, "]"))
	}
	if lastLabel := host[strings.LastIndex(host, ".")+1:]; strings.Trim(lastLabel, "0123456789") == "" {
		return checkAddress(host) // no top-level domain is a number, so this is an IPv4 address
	}
	if reasons := validation.IsDNS1123Subdomain(host); len(reasons) > 0 {
		return errors.New(reasons[0])
	}
	return nil
}

// splitHostPort returns a non-empty host and a port that is empty or starts with a colon. Unlike
// net.SplitHostPort it does not require a port, and keeps the brackets of an IPv6 address.
func splitHostPort(hostPort string) (host, port string, err error) {
	end := strings.IndexByte(hostPort, ':')
	if strings.HasPrefix(hostPort, "[") {
		end = strings.IndexByte(hostPort, ']') + 1
		if end == 0 {
			return "", "", errors.New("the bracket of the IPv6 address is not closed")
		}
	}
	if end < 0 {
		end = len(hostPort)
	}
	host, port = hostPort[:end], hostPort[end:]
	if host == "" {
		return "", "", errors.New("the host is empty")
	}
	if port != "" && port[0] != ':' {
		return "", "", errors.New("only a port may follow the IPv6 address")
	}
	return host, port, nil
}

func checkAddress(text string) error {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("%q is not an IP address", text)
	}
	if address.Unmap().IsUnspecified() {
		return fmt.Errorf("%s is not the address of a host", text)
	}
	if address.Zone() != "" || address.String() != text {
		return fmt.Errorf("the IP address must be written as %s", address.WithZone(""))
	}
	return nil
}

// isLoopback reports whether the host is the local host, which for a cache is its own pod.
func isLoopback(hostPort string) bool {
	host, _, err := splitHostPort(hostPort)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
