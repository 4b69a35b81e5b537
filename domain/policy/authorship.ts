/**
 * The fields in which the PCE records who created, changed and deleted an object, and when. The PCE sets them itself,
 * so they are not part of the object's content.
 */
export const AUTHORSHIP: readonly string[] = [
  'created_at',
  'created_by',
  'updated_at',
  'updated_by',
  'deleted_at',
  'deleted_by',
]
