// Package shoot validates what Shoots ask of the extension, in the garden and offline: the providerConfig by the very
// functions that the controller uses, and what its references lead to.
//
// It must not know what the controller makes of a config, and blocks no change of a Shoot that does not concern the
// extension.
package shoot
