// What an app of Relay has in its components; relay-compiler reads it and writes src/__generated__.
import { graphql } from 'relay-runtime'

// a list that is paged at the root, and again inside of each row
export const users = graphql`
  fragment documents_users on Query
  @refetchable(queryName: "documentsUsersPage")
  @argumentDefinitions(first: { type: "Int", defaultValue: 2 }, after: { type: "String" }) {
    usersConnection(first: $first, after: $after) @connection(key: "documents_usersConnection") {
      edges { node { id name } }
    }
  }
`
export const profile = graphql`
  fragment documents_profile on User
  @refetchable(queryName: "documentsProfilePage")
  @argumentDefinitions(first: { type: "Int", defaultValue: 1 }, after: { type: "String" }) {
    name
    postsConnection(first: $first, after: $after) @connection(key: "documents_postsConnection") {
      edges { node { id title } }
    }
  }
`
export const app = graphql`
  query documentsApp($id: ID!) {
    ...documents_users
    viewer { roles user { id name } }
    user(id: $id) { id ...documents_profile }
  }
`
export const read = graphql`query documentsRead($id: ID!) { user(id: $id) { id name email } }`
export const anything = graphql`
  query documentsAnything($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on User { name } ... on Post { title author { name } } } }
`
export const where = graphql`query documentsWhere($where: UserWhere) { users(where: $where, orderBy: [{ name: DESC }]) { id name } }`
export const some = graphql`query documentsSome($in: [OrderStatus!]) { orders(where: { status: { in: $in } }) { id status } }`
export const nested = graphql`
  query documentsNested { users(first: 3) { id name posts(first: 2) { title comments(first: 2) { body author { name } } } } }
`
export const create = graphql`mutation documentsCreate($input: UserCreate!) { createUser(input: $input) { id version name email } }`
export const update = graphql`
  mutation documentsUpdate($id: ID!, $patch: UserPatch!, $version: Int) {
    updateUser(id: $id, patch: $patch, ifVersion: $version) { id version name }
  }
`
export const changed = graphql`
  subscription documentsChanged($id: ID) { userChanged(id: $id) { cursor kind rowId user { id name } } }
`
