import type { PairingProfileOut } from '../../schemas/pairing-shapes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import { showLabelOf } from './show-label.js'

/** Converts a pairing profile that was just written, or that a dry run predicts, to its output form. */
export function showPairingProfile(profile: PairingProfile, expand: (label: LabelRef) => LabelRef): PairingProfileOut {
  const { href, name, description, labels } = profile
  return {
    href,
    name: name ?? '',
    ...(description != null && description !== '' && { description }),
    enabled: profile.enabled === true,
    is_default: profile.is_default === true,
    enforcement_mode: profile.enforcement_mode ?? null,
    enforcement_mode_lock: profile.enforcement_mode_lock ?? null,
    labels: (labels ?? []).map((label) => showLabelOf(expand(label))),
    key_lifespan: profile.key_lifespan ?? null,
    allowed_uses_per_key: profile.allowed_uses_per_key ?? null,
    total_use_count: profile.total_use_count ?? null,
    last_pairing_at: profile.last_pairing_at ?? null,
    last_pairing_key_generated_at: profile.last_pairing_key_generated_at ?? null,
  }
}
