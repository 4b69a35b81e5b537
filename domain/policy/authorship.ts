/**
 * Fields in which the PCE keeps who created, changed and deleted an object, and when. They change on their own and are
 * no content of the object.
 */
export const AUTHORSHIP: readonly string[] = [
  'created_at',
  'created_by',
  'updated_at',
  'updated_by',
  'deleted_at',
  'deleted_by',
]
