/**
 * How an account is written: `DOMAIN\user`, `user@realm`, or a name alone. A security identifier (`S-1-5-…`) counts as
 * a name alone.
 */
export type AccountForm = 'domain' | 'principal' | 'bare'

/** An account, parsed from the user name in a traffic row. */
export interface Account {
  /** The user name as it was reported. */
  text: string
  form: AccountForm
  /** The name without its realm, in lower case. */
  name: string
  /**
   * The realm in lower case: a domain, a computer name, or the suffix after `@`. Null if the account is written without
   * one.
   */
  realm: string | null
  /**
   * A string that is equal for two spellings of the same account. With a realm, case is ignored, as directories ignore
   * it. Without a realm, case matters, because `ada` and `Ada` are two accounts on Linux (P113).
   */
  id: string
}

/** Parses the user name of a traffic row. `text` must not be empty. */
export function parseAccount(text: string): Account {
  const backslash = text.indexOf('\\')
  const [realm, name] = [text.slice(0, backslash), text.slice(backslash + 1)]
  // A dot stands for the local computer, so it is not a realm that could be compared with others.
  if (backslash > 0 && name !== '' && realm !== '.') return withRealm('domain', text, realm, name)
  const at = text.lastIndexOf('@')
  if (backslash === -1 && at > 0 && at < text.length - 1)
    return withRealm('principal', text, text.slice(at + 1), text.slice(0, at))
  const own = realm === '.' && name !== '' ? name : text
  return { text, form: 'bare', name: own.toLowerCase(), realm: null, id: `bare ${own}` }
}

function withRealm(form: AccountForm, text: string, realm: string, name: string): Account {
  const [ofRealm, ofName] = [realm.toLowerCase(), name.toLowerCase()]
  return { text, form, name: ofName, realm: ofRealm, id: `${form} ${ofRealm}\n${ofName}` }
}
