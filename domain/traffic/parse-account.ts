/**
 * The way in which an account is written: `DOMAIN\user`, `user@realm`, or the name alone. A security identifier
 * (`S-1-5-…`) is a name alone.
 */
export type AccountForm = 'domain' | 'principal' | 'bare'

/** An account as the user name of a traffic row tells it. */
export interface Account {
  /** The user name as it was reported. */
  text: string
  form: AccountForm
  /** The name without its realm, in lower case. */
  name: string
  /** The realm in lower case: a domain, a computer, or the suffix after `@`. Null for a name alone. */
  realm: string | null
  /**
   * A text that is equal for two spellings of the same account. Case makes no difference where there is a realm, because
   * directories ignore it. It does for a name alone, because on Linux `ada` and `Ada` are two accounts (P113).
   */
  id: string
}

/** Reads the user name of a traffic row. The text is never empty. */
export function parseAccount(text: string): Account {
  const backslash = text.indexOf('\\')
  const [realm, name] = [text.slice(0, backslash), text.slice(backslash + 1)]
  // A dot stands for the computer itself, which is no realm that could be compared with others.
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
