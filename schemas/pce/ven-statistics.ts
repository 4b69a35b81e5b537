import { Type, type Static } from '@sinclair/typebox'

/** What VENs can be counted by (P49). */
export const VEN_PROPERTIES = [
  'status',
  'version',
  'health',
  'condition',
  'os_id',
  'enforcement_mode',
  'ven_type',
] as const
export type VenProperty = (typeof VEN_PROPERTIES)[number]

/** How many VENs have each value of one property. */
export const VenPropertyCounts = Type.Object({
  property: Type.String(),
  counts: Type.Array(
    Type.Object({ value: Type.String(), filtered_count: Type.Integer(), unfiltered_count: Type.Integer() }),
  ),
  total_filtered_count: Type.Integer(),
})
export type VenPropertyCounts = Static<typeof VenPropertyCounts>

/** The counts under the names of their properties. */
export const VenStatistics = Type.Record(Type.String(), VenPropertyCounts)
export type VenStatistics = Partial<Record<VenProperty, VenPropertyCounts>>
