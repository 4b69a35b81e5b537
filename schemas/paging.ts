import { Type } from '@sinclair/typebox'

/** Most objects one answer may name, whatever the caller asks for. */
export const MAX_PAGE = 10_000

/** Input properties every list tool takes (design decision 2). */
export const PagingInput = {
  max_results: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'Most objects in this answer; continue with cursor' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 4096, description: 'next_cursor of the last answer; keep the filters' }),
  ),
}

/** Output properties every list tool answers (design decision 2). */
export const PagingOutput = {
  total_count: Type.Integer({ description: 'Objects that match all filters' }),
  pce_total: Type.Integer({ description: 'X-Total-Count of the query sent' }),
  truncated: Type.Boolean({ description: 'More match than this answer shows' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
}
