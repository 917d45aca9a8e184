package engine

// revive says what to do about an engine that does not answer before it is taken for gone, with all that it ran: to start it, if it is
// ours and has died, or what a person has to do, if it may well run. Neither, if none runs as far as this host shows.
func revive(h host, ours bool) (start bool, missing *Missing) {
	if missing := withheld(h); missing != nil {
		return false, missing
	}
	how, missing := decide(h)
	switch {
	case ours && missing == nil && len(how.install) == 0:
		return true, nil
	case ours && h.daemon && missing != nil:
		// Its containers outlive a dockerd that was killed.
		return false, missing
	case h.listening:
		return false, &Missing{"something listens at " + h.endpoint + " and does not answer as a docker engine" + reason(h),
			"look into the log of dockerd and restart it"}
	}
	return false, nil
}
