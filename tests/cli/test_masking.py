from sqlalchemy.engine import make_url

from rowlock.databases.url import masked


def test_secrets_are_stars_and_the_rest_stays():
    url = "postgresql://ann:s%40cret@host:5432/db?sslpassword=s3cret&application_name=x%2Ay"
    assert masked(url) == "postgresql://ann:***@host:5432/db?application_name=x%2Ay&sslpassword=***"
    assert masked(make_url(url)) == masked(url)
    assert masked("sqlite:///rowlock.db") == "sqlite:///rowlock.db"
