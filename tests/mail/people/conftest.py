from tests.mail.conftest import mail_server

__all__ = ["mail_server"]
