/** What a VEN does with traffic. In a file of its own: tools need the words at start, and not the shapes of what they occur in. */
export const ENFORCEMENT_MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
export type EnforcementMode = (typeof ENFORCEMENT_MODES)[number]
