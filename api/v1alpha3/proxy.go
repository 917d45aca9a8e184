package v1alpha3

import (
	"errors"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateProxy(proxy *Proxy, path *field.Path) field.ErrorList {
	errs := validateURL(proxy.HTTPProxy, path.Child("httpProxy"))
	errs = append(errs, validateURL(proxy.HTTPSProxy, path.Child("httpsProxy"))...)
	for _, entry := range NoProxyEntries(proxy) {
		if strings.Contains(entry, "@") {
			errs = append(errs, field.Invalid(path.Child("noProxy"), field.OmitValueType{}, "user information is not allowed"))
		} else if err := checkNoProxy(entry); err != nil {
			errs = append(errs, field.Invalid(path.Child("noProxy"), entry, err.Error()))
		}
	}
	return errs
}

// NoProxyEntries returns the trimmed entries of proxy.noProxy, or nil if noProxy is not set.
func NoProxyEntries(proxy *Proxy) []string {
	if proxy == nil || proxy.NoProxy == nil {
		return nil
	}
	entries := strings.Split(*proxy.NoProxy, ",")
	for i := range entries {
		entries[i] = strings.Trim(entries[i], " ")
	}
	return entries
}

// checkNoProxy accepts the entries that golang.org/x/net/http/httpproxy understands, and rejects
// the entries that this library would silently ignore. It accepts a host (which includes its
// subdomains), a domain that starts with "." or "*.", or an IP address, each with an optional port.
// It also accepts a CIDR.
func checkNoProxy(entry string) error {
	switch entry {
	case "":
		return errors.New("must be hosts, domains, IP addresses or CIDRs, separated by single commas")
	case "*":
		return errors.New("would bypass the proxy for every host; omit proxy instead")
	}
	if strings.Contains(entry, "/") {
		if prefix, err := netip.ParsePrefix(entry); err != nil || prefix.String() != entry {
			return errors.New("must be a CIDR such as 10.0.0.0/8")
		}
		return nil
	}
	if address, err := netip.ParseAddr(entry); err == nil && address.Zone() == "" {
		return nil
	}
	if domain, ok := strings.CutPrefix(strings.TrimPrefix(entry, "*"), "."); ok {
		entry = domain
	}
	if strings.HasSuffix(entry, "]") {
		return errors.New("an IPv6 address without a port must have no brackets")
	}
	return checkHostPort(entry)
}
