import type { PceClient } from '../../pce-client/index.js'
import type { ReadContext } from '../inventory/labels.js'
import { nounOf } from '../inventory/find-object.js'
import type { WholePolicy } from '../history/load-policy.js'
import { quote } from '../text/escape-text.js'
import { type Document, writeDocument } from './convert-objects.js'
import { type FileKind, FILE_KINDS } from './name-book.js'
import { bookOf, isBuiltIn, whyWithoutFile } from './read-files.js'

/** One version of the policy in the form of documents. */
export interface ExportedPolicy {
  documents: readonly { kind: FileKind; document: Document }[]
  /** Sentences about objects and fields that files cannot contain. */
  notes: readonly string[]
}

/** Converts one version of the policy to documents, with notes on what they do not contain. */
export async function exportPolicy(
  ctx: ReadContext & { pce: PceClient },
  policy: WholePolicy,
): Promise<ExportedPolicy> {
  const book = await bookOf(ctx, policy)
  const documents: { kind: FileKind; document: Document }[] = []
  const notes: string[] = []
  for (const kind of FILE_KINDS) {
    for (const object of policy[kind].values()) {
      const what = `the ${nounOf(kind)} ${typeof object.name === 'string' && object.name !== '' ? quote(object.name) : object.href}`
      const why = whyWithoutFile(kind, object, book)
      if (why !== null) {
        if (!isBuiltIn(kind, object.name))
          notes.push(`${what} (${object.href}): ${why}. What refers to it has its href.`)
        continue
      }
      const { document, left } = writeDocument(kind, object, book)
      documents.push({ kind, document })
      if (left.length > 0)
        notes.push(`${left.join(', ')} of ${what}: files do not have this, and apply leaves it as it is.`)
    }
  }
  for (const kind of ['virtual_services', 'enforcement_boundaries'] as const) {
    const { size } = policy[kind]
    if (size > 0) notes.push(`${size} ${kind.replaceAll('_', ' ')}: they have no files.`)
  }
  return { documents, notes }
}
