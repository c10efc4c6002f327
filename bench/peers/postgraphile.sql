-- What PostGraphile serves: views of the tables, with the rules of the model in them for a constant viewer. Smart comments say
-- what a view cannot: its key, and what refers to what.
DROP SCHEMA IF EXISTS postgraphile CASCADE;
CREATE SCHEMA postgraphile;

CREATE VIEW postgraphile.users AS
  SELECT id, name, CASE WHEN id = :viewer THEN email END AS email FROM public.users;
COMMENT ON VIEW postgraphile.users IS '@primaryKey id';

CREATE VIEW postgraphile.posts AS
  SELECT id, author_id, title FROM public.posts WHERE published OR author_id = :viewer;
COMMENT ON VIEW postgraphile.posts IS
  E'@primaryKey id\n@foreignKey (author_id) references postgraphile.users (id)|@fieldName author|@foreignSimpleFieldName posts';

CREATE VIEW postgraphile.comments AS SELECT id, post_id, author_id, body FROM public.comments;
COMMENT ON VIEW postgraphile.comments IS
  E'@primaryKey id\n@foreignKey (author_id) references postgraphile.users (id)|@fieldName author\n@foreignKey (post_id) references postgraphile.posts (id)|@foreignSimpleFieldName comments';

CREATE VIEW postgraphile.orders AS
  SELECT id, version, created_at, updated_at, customer_id, status, total, currency, note FROM public.orders;
ALTER VIEW postgraphile.orders ALTER COLUMN id SET DEFAULT uuidv7();
ALTER VIEW postgraphile.orders ALTER COLUMN version SET DEFAULT 1;
ALTER VIEW postgraphile.orders ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW postgraphile.orders ALTER COLUMN updated_at SET DEFAULT now();
ALTER VIEW postgraphile.orders ALTER COLUMN status SET DEFAULT 'pending';
COMMENT ON VIEW postgraphile.orders IS
  E'@primaryKey id\n@foreignKey (customer_id) references postgraphile.users (id)|@fieldName customer';
