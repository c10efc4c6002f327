// node audit.mjs URL: runs every audit of the graphql-http suite against a server
// and prints [{id, name, status, reason}]; the status is "ok", "notice", "warn" or "error".
import { auditServer } from 'graphql-http'

const results = await auditServer({ url: process.argv[2] })
const rows = results.map(({ id, name, status, reason = null }) => ({ id, name, status, reason }))
console.log(JSON.stringify(rows))
